package postgres_test

import (
	"testing"

	"github.com/berthml/berth/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
