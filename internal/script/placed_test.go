package script

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlaced(t *testing.T) {
	t.Parallel()

	const nowhere = "nowhere"

	for dockerfile, want := range map[string]string{
		"WORKDIR /app\nCOPY . .":                                   "/app/x.py",
		"WORKDIR /app\nCOPY ./ /code/":                             "/code/x.py",
		"WORKDIR /app\nCOPY *.py ./":                               "/app/x.py",
		"workdir /app\nworkdir src\ncopy x.py .":                   "/app/src/x.py",
		"WORKDIR /app\nCOPY --chown=1:1 [\"x.py\", \"main.py\"]":   "/app/main.py",
		"WORKDIR /app\nCOPY x.py y.py \\\n  # why\n  /opt/":        "/opt/x.py",
		"COPY x.py /app":                                           "/app/x.py",
		"COPY x.py .":                                              "/home/x.py",
		"WORKDIR $HOME\nCOPY x.py .":                               "",
		"FROM other\nCOPY x.py .":                                  "",
		"WORKDIR /app\nCOPY y.py src/ ./":                          nowhere,
		"COPY":                                                     nowhere,
		"RUN echo COPY x.py /app/":                                 nowhere,
		"WORKDIR /a\nCOPY . .\nFROM mine:1 AS b\nWORKDIR /b":       nowhere,
		"FROM mine:1 AS a\nWORKDIR /a\nCOPY . .\nFROM a\nRUN true": "/a/x.py",
		"FROM mine:1 AS a\nWORKDIR /a\nCOPY . src\nFROM other\nCOPY --from=a /a /b": "/b/src/x.py",
	} {
		file, copied := Placed("FROM mine:1\n"+dockerfile+"\n", "x.py", map[string]string{"mine:1": "/home"})
		if want == nowhere {
			require.False(t, copied, dockerfile)

			want = ""
		} else {
			require.True(t, copied, dockerfile)
		}

		require.Equal(t, want, file, dockerfile)
	}
}
