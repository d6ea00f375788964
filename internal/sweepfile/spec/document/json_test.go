package document_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

func TestJSON(t *testing.T) {
	t.Parallel()

	tests := map[string]any{
		`null`:                              nil,
		` {"a" : [1, -2.5e3, true, null]} `: map[string]any{"a": []any{1.0, -2500.0, true, nil}}, //nolint:gocritic // the white space is under test
		`{"a\u0041":"\"\\\n\u00e9"}`:        map[string]any{"aA": "\"\\\né"},
		`{}`:                                map[string]any{},
		`[]`:                                []any{},
		`[[],{"a":{}}]`:                     []any{[]any{}, map[string]any{"a": map[string]any{}}},
		`"x,}y:"`:                           "x,}y:",
	}

	for text, want := range tests {
		root, err := document.ParseJSON([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, plain(t, *root), text)
	}
}

func TestJSONRefuses(t *testing.T) {
	t.Parallel()

	tests := []struct {
		text, want string
		cause      error
	}{
		{"{\n \"a\": }", "line 2, column 7: invalid character '}'", document.ErrSyntax},
		{`{"a": 1} x`, "column 10: invalid character 'x' after top-level value", document.ErrSyntax},
		{`{"a": 1`, "unexpected end of JSON input", document.ErrSyntax},
		{"\"\xff\"", "not UTF-8", document.ErrEncoding},
		{strings.Repeat("[", 40) + strings.Repeat("]", 40), "nested deeper than 32", document.ErrDepth},
		{strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), "max depth", document.ErrDepth},
		{"[" + strings.Repeat("1,", 200_000) + "1]", "more than 200000 values", document.ErrSize},
	}

	for _, test := range tests {
		_, err := document.ParseJSON([]byte(test.text))
		require.ErrorContains(t, err, test.want)
		require.ErrorIs(t, err, test.cause)
	}
}

func TestFieldsKeepTheirPlace(t *testing.T) {
	t.Parallel()

	root, err := document.ParseJSON([]byte(`{"a": 1, "a": [2]}`))
	require.NoError(t, err)
	require.Len(t, root.Fields, 2)
	require.Equal(t, 9, root.Fields[1].Offset)
	require.Equal(t, 14, root.Fields[1].Value.Offset)
	require.Equal(t, 15, root.Fields[1].Value.Items[0].Offset)
}
