package masking

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

const hub = "hf_Tp0KenValue42"

// masked is a log's text for chunks of one stream.
func masked(m *Mask, chunks ...string) string {
	var shown strings.Builder

	for _, c := range chunks {
		shown.Write(m.Chunk(berth.LogChunk{Stream: berth.Stdout, Data: []byte(c)}).Data)
	}

	return shown.String()
}

func TestMask(t *testing.T) {
	t.Parallel()

	const pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\n{\nab\n-----END KEY-----\n"

	stars := strings.Repeat("*", len(hub))
	in64 := base64.StdEncoding.EncodeToString([]byte(hub))

	for name, test := range map[string]struct {
		values []string
		chunks []string
		want   string
	}{
		"nothing in it":      {[]string{hub}, []string{"epoch 1 hf_ token\n"}, "epoch 1 hf_ token\n"},
		"a word":             {[]string{hub}, []string{"token=" + hub + "!\n"}, "token=" + stars + "!\n"},
		"twice":              {[]string{hub}, []string{hub + hub + "\n"}, stars + stars + "\n"},
		"with its line end":  {[]string{hub + "\n"}, []string{"a " + hub + " b\n"}, "a " + stars + " b\n"},
		"cut once":           {[]string{hub}, []string{"a " + hub[:5], hub[5:] + " b\n"}, "a " + stars + " b\n"},
		"cut twice":          {[]string{hub}, []string{hub[:1], hub[1:9], hub[9:]}, stars},
		"cut, and not it":    {[]string{hub}, []string{"x" + hub[:2], "zzz\n"}, "x**zzz\n"},
		"a beginning, whole": {[]string{hub}, []string{hub[:9] + "\n", hub[9:] + "\n"}, hub[:9] + "\n" + hub[9:] + "\n"},
		"four bytes":         {[]string{"abcd"}, []string{"xabcdx abc\n"}, "x****x abc\n"},
		"three bytes":        {[]string{"abc"}, []string{"abc\n"}, "abc\n"},
		"overlaps itself":    {[]string{"abab"}, []string{"ababab\n"}, "******\n"},
		"base64":             {[]string{hub}, []string{in64 + "\n"}, strings.Repeat("*", len(strings.TrimRight(in64, "="))) + strings.Repeat("=", strings.Count(in64, "=")) + "\n"},
		"in a URL":           {[]string{"a/b+c=d&e"}, []string{"?t=a%2Fb%2Bc%3Dd%26e\n"}, "?t=*****************\n"},
		"a line of several":  {[]string{pem}, []string{"x MIIEvQIBADANBgkq y\n", "{\n", "ab\n"}, "x **************** y\n{\nab\n"},
		"several lines": {
			[]string{pem}, strings.SplitAfter("k: "+pem+"z\n", "\n"), "k: *******************\n****************\n*\n**\n*****************\nz\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var values [][]byte
			for _, v := range test.values {
				values = append(values, []byte(v))
			}

			require.Equal(t, test.want, masked(New(values), test.chunks...))
		})
	}
}

func TestMask_StreamsAreApart(t *testing.T) {
	t.Parallel()

	m := New([][]byte{[]byte(hub)})
	show := func(stream, text string) string {
		return string(m.Chunk(berth.LogChunk{Stream: stream, Data: []byte(text)}).Data)
	}

	require.Equal(t, "*****", show(berth.Stdout, hub[:5]))
	require.Equal(t, "warning\n", show(berth.Stderr, "warning\n"))
	require.Equal(t, strings.Repeat("*", len(hub)-5)+"\n", show(berth.Stdout, hub[5:]+"\n"))
}

func TestMask_WithoutValuesHidesNothing(t *testing.T) {
	t.Parallel()

	require.Nil(t, New(nil))
	require.Equal(t, hub, masked(nil, hub))
	require.Equal(t, hub, (*Mask)(nil).Text(hub))

	blind := New([][]byte{nil})
	blind.Blind = true
	require.Equal(t, "*******\n*", masked(blind, "what is", "\nx"), "what the trial has is not known")
}

// However a log is cut, the shown text has no value, and every position stays.
func TestMask_NoCutShowsAValue(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ab\n]{4,9}`)
		values := rapid.SliceOfN(word, 1, 3).Draw(t, "values")

		var raw [][]byte
		for _, v := range values {
			raw = append(raw, []byte(v))
		}

		text := strings.Join(rapid.SliceOf(rapid.OneOf(word, rapid.SampledFrom(values))).Draw(t, "text"), "")
		m := New(raw)

		var chunks []string

		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			if end := strings.IndexByte(rest[:n], '\n'); end >= 0 { // Docker ends a chunk there
				n = end + 1
			}

			chunks, rest = append(chunks, rest[:n]), rest[n:]
		}

		shown := masked(m, chunks...)
		require.Len(t, shown, len(text))

		for i := range text {
			require.True(t, shown[i] == text[i] || shown[i] == '*')
		}

		for _, v := range values {
			if v = strings.TrimSpace(v); len(v) >= berth.MinMaskedBytes && strings.ContainsAny(v, "ab") {
				require.NotContains(t, shown, v)
			}
		}
	})
}

// The objective keeps its name; other occurrences of the value are masked.
func TestMask_KeepsPublicNames(t *testing.T) {
	t.Parallel()

	m := New([][]byte{[]byte("test")}, "test_acc", "test_epoch_acc")

	require.Equal(t, "test_acc", m.Name("test_acc"))
	require.Equal(t, "test_epoch_acc", m.Name("test_epoch_acc"))
	require.Equal(t, "****_loss", m.Name("test_loss"))
	require.Equal(t, `never reported "****_acc"`, m.Text(`never reported "test_acc"`))
	require.Equal(t, "****_acc=1\n", masked(m, "test_acc=1\n"))

	m.Blind = true
	require.Equal(t, "test_acc", m.Name("test_acc"))
	require.Equal(t, "****", m.Name("loss"), "it may be what is not known")
	require.Equal(t, "****", m.Quote("loss"))
	require.Equal(t, "no **** is left", m.Text("no test is left"), "a text of Berth's")
}

// production.md: "URL-escaped", "JSON-quoted", and the parts that programs read from files of
// secrets.
func TestMask_HidesFormsAndParts(t *testing.T) {
	t.Parallel()

	const (
		aws   = "wJalrXUt/K7MDENG+bPxRfiCYEXAMPLEKEY"
		shown = "401 for " + hub + " of bob\n"
	)

	for name, test := range map[string]struct{ value, printed, piece string }{
		"urllib.parse.quote":      {aws, "https://s3/?k=" + strings.ReplaceAll(aws, "+", "%2B") + "\n", aws[:8]},
		"a space as %20":          {"correct horse battery", "p=correct%20horse%20battery\n", "battery"},
		"lower-case escapes":      {"correct/horse+battery", "p=correct%2fhorse%2bbattery\n", "battery"},
		"text mode drops the CRs": {"bob\r\nhunter2\r\n", "bob\nhunter2\n", "hunter2"},
		"quoted":                  {`pa'ss"word\12`, `{"x": "pa'ss\"word\\12"}`, "word"},
		"kaggle.json":             {`{"username":"bob","key":"` + hub + `"}`, shown, hub},
		"nested JSON":             {`{"hosts":[{"name":"a","token":"` + hub + `"}]}`, shown, hub},
		"indented JSON":           {"{\n  \"username\": \"bob\",\n  \"key\": \"" + hub + "\"\n}\n", shown, hub},
		".env":                    {"HF_HOME=/x\nHF_TOKEN=" + hub + "\r\nLEVEL=3\n", shown, hub},
		"exported":                {"export WANDB_API_KEY='" + hub + "'\n", shown, hub},
		"INI":                     {"[default]\naws_secret_access_key = " + hub + "\n", shown, hub},
		"YAML":                    {"registry:\n  token: \"" + hub + "\"\n", shown, hub},
		".netrc":                  {"machine api.wandb.ai login user password " + hub + "\n", shown, hub},
		".netrc, lines":           {"machine api.wandb.ai\n  login user\n  password " + hub + "\n", shown, hub},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			require.Contains(t, test.printed, test.piece)

			got := masked(New([][]byte{[]byte(test.value)}), strings.SplitAfter(test.printed, "\n")...)
			require.NotContains(t, got, test.piece)

			if test.printed == shown {
				require.Equal(t, strings.ReplaceAll(shown, hub, strings.Repeat("*", len(hub))), got, "no more than the part")
			}
		})
	}
}

// In HTTP's Basic, a value is in base64 behind a name of any length.
func TestMask_HidesBase64InALongerText(t *testing.T) {
	t.Parallel()

	m := New([][]byte{[]byte(hub)})

	for _, text := range []string{"api:" + hub, "x:" + hub, "ab:" + hub, hub + ":", "a:" + hub + ":b", hub} {
		for _, code := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			shown := masked(m, "Authorization: Basic "+code.EncodeToString([]byte(text))+"\n")
			kept := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(shown), "Authorization: Basic "), "=", "")
			// At most the characters shared with other bytes.
			require.LessOrEqual(t, len(strings.ReplaceAll(kept, "*", "")), (len(text)-len(hub))*8/6+3, shown)
		}
	}
}
