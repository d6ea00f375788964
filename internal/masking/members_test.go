package masking

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Programs that read a file of settings, a connection string or a URL print the value of one
// member without what stands around it. Comments end where the file's own readers end them.
func TestMask_HidesMembersWithSomethingBehindThem(t *testing.T) {
	t.Parallel()

	for name, value := range map[string]string{
		".env, quoted, a comment behind it":          "DB_PASSWORD=\"" + hub + "\" # the staging one\nDB_HOST=db\n",
		".env, a comment behind it":                  "API_KEY=" + hub + " # ada's\nX=1\n",
		"TOML, a comment behind it":                  "token = \"" + hub + "\"  # read only\n",
		"TOML, in one line":                          "[db]\nlogin = { user = \"ada\", password = \"" + hub + "\" }\n",
		"TOML, a list":                               "tokens = [\"" + hub + "\", \"hf_fedcba9876543210\"]\n",
		"INI, a comment behind it":                   "password = " + hub + " ; the staging one\n",
		"a shell's file, a semicolon behind":         "export TOKEN=" + hub + "; export OTHER=1\n",
		"a shell's file, the second of a line":       "export OTHER=1; export TOKEN=" + hub + "\n",
		"YAML, a mapping in a list":                  "- token: " + hub + "\n- token: hf_fedcba9876543210\n",
		"YAML, in one line":                          "{user: ada, token: " + hub + "}\n",
		"YAML, a list":                               "tokens:\n  - " + hub + "\n  - hf_fedcba9876543210\n",
		"YAML, a list in one line":                   "tokens: [" + hub + ", x] # two\n",
		"YAML, a second document":                    "a: 1\n---\ntoken: " + hub + "\n",
		"JSON, one a line":                           "{\"a\":1}\n{\"token\":\"" + hub + "\"}\n",
		"a URL's password in its query":              "postgresql://db/x?user=ada&password=" + hub,
		"a URL's password in its query, not at last": "postgresql://db/x?password=" + hub + "&user=ada",
		".netrc, in quotes":                          "machine x login ada password \"" + hub + "\"\n",
		"libpq's keywords":                           "host=db user=ada password=" + hub + " dbname=x",
		"libpq's keywords, in quotes":                "host=db password='" + hub + "' dbname=x",
		"git, a token as a URL's user":               "https://" + hub + "@github.com/team/x.git",
		"git, a token as a URL's user and no secret": "https://" + hub + ":x-oauth-basic@github.com/team/x.git",
		"a header":                   "Authorization: Bearer " + hub,
		"an Azure connection string": "DefaultEndpointsProtocol=https;AccountName=bob;AccountKey=" + hub + ";EndpointSuffix=core.windows.net",
		"JSON in JSON":               `{"credentials":"{\"private_key\":\"` + hub + `\"}"}`,
		".env in YAML":               "env: |\n  A=1\n  TOKEN=" + hub + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			m := New([][]byte{[]byte(value)})
			require.Equal(t, "401 for "+strings.Repeat("*", len(hub))+" of bob\n", masked(m, "401 for "+hub+" of bob\n"))
		})
	}
}

func TestMask_HidesPasswordsWithSignsOfURLs(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct{ value, printed string }{
		"an @ in it":         {"postgres://ada:p@ssword-p@ssword@db/x", "p@ssword-p@ssword"},
		"a slash in it":      {"postgres://ada:geheim/geheim@db/x", "geheim/geheim"},
		"escaped":            {"postgres://ada:geheim%2Fgeheim@db/x", "geheim/geheim"},
		"escaped, in query":  {"postgres://db/x?password=geheim%2Fgeheim&user=ada", "geheim/geheim"},
		"blanks, in .netrc":  {"machine x login ada password \"hunter2 hunter2\"\n", "hunter2 hunter2"},
		"blanks, in a shell": {"export P='hunter2 hunter2' # x\n", "hunter2 hunter2"},
		"quotes, in JSON":    {`{"p":"hunter\"hunter\\2"}`, `hunter"hunter\2`},
		"quotes, in .env":    {`P="hunter\"hunter2" # x`, `hunter"hunter2`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, strings.Repeat("*", len(test.printed)), masked(New([][]byte{[]byte(test.value)}), test.printed))
		})
	}
}

// The path of a webhook's URL is what logs in. Python's urllib3 prints it without its host.
func TestMask_HidesPathsThatLogIn(t *testing.T) {
	t.Parallel()

	const (
		slack = "/services/T0123ABCD/B0123ABCD/Zq8vXw2LkP0aRt6YbN4mHs1C"
		bot   = "bot123456789:AAF-abcdefghijklmnopqrstuvwxyz0123"
		low   = "yqx8gm7m5bbr7mrm6hm5bk8i6n"

		teams   = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9@1a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9/IncomingWebhook/0a1b2c3d4e5f60718293a4b5c6d7e8f9/2a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
		discord = "123456789012345678/Zq8vXw2LkP0aRt6YbN4mHs1C_Zq8vXw2LkP0aRt6YbN4mHs1C-Zq8vXw2LkP0aRt6Y"
	)

	for name, test := range map[string]struct{ value, printed string }{
		"Slack":                  {"https://hooks.slack.com" + slack, slack},
		"Slack, a port":          {"https://hooks.slack.com:443" + slack, slack},
		"Slack's token":          {"https://hooks.slack.com" + slack, "Zq8vXw2LkP0aRt6YbN4mHs1C"},
		"a file of settings":     {"SLACK_URL=https://hooks.slack.com" + slack + " # ours\nX=1\n", slack},
		"JSON":                   {`{"url": "https://hooks.slack.com` + slack + `"}`, slack},
		"a query":                {"https://prod.logic.azure.com/workflows/abc/run?sig=x-y", "/workflows/abc/run?sig=x-y"},
		"its path":               {"https://prod.logic.azure.com/workflows/abc/run?sig=x-y", "/workflows/abc/run"},
		"escaped":                {"https://host/hooks/a%20b-Zq8vXw2LkP0aRt6Y", "/hooks/a b-Zq8vXw2LkP0aRt6Y"},
		"Logic Apps":             {"https://prod.logic.azure.com:443/workflows/0a1b2c3d4e5f60718293a4b5c6d7e8f9/triggers/manual/paths/invoke?sp=x&sig=x-y", "/workflows/0a1b2c3d4e5f60718293a4b5c6d7e8f9/triggers/manual/paths/invoke"},
		"a signature":            {"https://host/hooks/run?v=1&by=Zq8vXw2LkP0aRt6Y", "/hooks/run"},
		"Teams":                  {"https://x.webhook.office.com/webhookb2/" + teams, "/webhookb2/" + teams},
		"Teams, a port":          {"https://x.webhook.office.com:443/webhookb2/" + teams, "/webhookb2/" + teams},
		"Slack, letters alone":   {"https://hooks.slack.com/services/T0/B0/ZqbvXwaLkPhaRtcYdEfgHijk", "/services/T0/B0/ZqbvXwaLkPhaRtcYdEfgHijk"},
		"Discord":                {"https://discord.com/api/webhooks/" + discord, "/api/webhooks/" + discord},
		"a UUID":                 {"https://hc-ping.com/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9/fail", "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"},
		"a chosen topic":         {"https://ntfy.sh/berth-Training2024-Secret99", "berth-Training2024-Secret99"},
		"something shared":       {"https://cloud.example/share/xubqyt-2Kuzba-dyvgoz/data.zip", "/share/xubqyt-2Kuzba-dyvgoz/data.zip"},
		"shared, shortly":        {"https://cloud.example/s/Ghost42-Banana17-Rocket99/x", "/s/Ghost42-Banana17-Rocket99/x"},
		"shared by Nextcloud":    {"https://cloud.example/index.php/s/Ab3dEf6hIj9kLmN/download", "Ab3dEf6hIj9kLmN"},
		"a topic in a network":   {"http://ntfy:8080/berth-Training2024-Secret99", "berth-Training2024-Secret99"},
		"a topic of a host":      {"http://ntfy/my-secret-training-topic", "my-secret-training-topic"},
		"Mattermost":             {"https://mattermost.example/hooks/" + low, "/hooks/" + low},
		"Mattermost, a port":     {"https://mattermost.example:8065/hooks/" + low, "/hooks/" + low},
		"Mattermost's token":     {"MATTERMOST=https://mattermost.example/hooks/" + low + "\nX=1\n", low},
		"Mattermost, two digits": {"https://mattermost.example/hooks/yqxagmtmobbrtmrmehmnbk8i6n", "/hooks/yqxagmtmobbrtmrmehmnbk8i6n"},
		"Make":                   {"https://hook.eu1.make.com/a1b2c3d4e5f6g7h8i9j0klmnopqrstuv", "a1b2c3d4e5f6g7h8i9j0klmnopqrstuv"},
		"Make, letters alone":    {"https://hook.eu1.make.com/abcdefghxjklmnopqrstuvwxyzabcdef", "abcdefghxjklmnopqrstuvwxyzabcdef"},
		"Zapier":                 {"https://hooks.zapier.com/hooks/catch/1234567/abc12de/", "/hooks/catch/1234567/abc12de/"},
		"Zapier, no last slash":  {"https://hooks.zapier.com/hooks/catch/1234567/abc12de/", "/hooks/catch/1234567/abc12de"},
		"n8n":                    {"https://n8n.example/webhook/training-is-done-7", "/webhook/training-is-done-7"},
		"small letters":          {"https://host/notify/" + low, "/notify/" + low},
		"Telegram":               {"https://api.telegram.org/" + bot + "/sendMessage", "/" + bot + "/sendMessage"},
		"Telegram, another call": {"https://api.telegram.org/" + bot + "/sendMessage", bot},
		"Telegram, its base":     {"https://api.telegram.org/" + bot, bot},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			const before = "HTTPSConnectionPool(host='h', port=443): Max retries exceeded with url: "
			require.Equal(t, before+strings.Repeat("*", len(test.printed))+" (", masked(New([][]byte{[]byte(test.value)}), before+test.printed+" ("))
		})
	}

	ordinary := New([][]byte{[]byte("https://git.example/repository postgres://db/data/base")})
	require.Equal(t, "GET /repository of /data/base", masked(ordinary, "GET /repository of /data/base"), "these open nothing")

	for _, name := range []string{"datasets", "datasets/imagenet-2012-train.tar", "models/customer-churn-prediction"} {
		folder := New([][]byte{[]byte("DATA_URL=https://nas.example/share/" + name + "\nTOKEN=geheim-geheim")})
		require.Equal(t, "reading /mnt/"+name+"\n", masked(folder, "reading /mnt/"+name+"\n"), "a folder on a share")
	}
}

// Whatever chance makes of a token of the shapes in use, it looks like no name of data. Each
// has a digit and a capital letter, so that it would be hidden if names were not looked for.
func TestMask_HidesTokensOfShapesInUse(t *testing.T) {
	t.Parallel()

	const (
		lower   = "abcdefghijklmnopqrstuvwxyz"
		upper   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		digits  = "0123456789"
		each    = 20_000
		base62  = upper + lower + digits
		base64  = base62 + "-_"
		crock32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	)

	for name, shape := range map[string]struct {
		before, signs string
		groups        []int
	}{
		"Slack":               {"", base62, []int{24}},
		"Slack's bot":         {"xoxb-123456789012-1234567890123-", base62, []int{24}},
		"Discord":             {"", base64, []int{68}},
		"Discord's bot":       {"", base64, []int{26, 6, 38}},
		"GitHub":              {"ghp_", base62, []int{36}},
		"GitHub, of one use":  {"github_pat_", base62, []int{22, 59}},
		"GitLab":              {"glpat-", base64, []int{20}},
		"Hugging Face":        {"hf_", upper + lower + digits, []int{34}},
		"IFTTT":               {"", base64, []int{22}},
		"Telegram":            {"bot123456789:AA", base64, []int{33}},
		"Google":              {"AIza", base64, []int{35}},
		"AWS":                 {"AKIA", upper + "234567", []int{16}},
		"32 bytes, base64":    {"", base64, []int{43}},
		"16 letters":          {"", base62, []int{16}},
		"ULID":                {"", crock32, []int{26}},
		"Rocket.Chat":         {"", base62, []int{17}},
		"a JWT":               {"eyJhbGciOiJIUzI1NiJ9.", base64, []int{40, 43}},
		"a key in groups":     {"", upper + digits, []int{5, 5, 5, 5}},
		"of longer groups":    {"", base62, []int{8, 8, 8}},
		"a service's own, v1": {"v1.", base62, []int{32}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			random := rand.New(rand.NewPCG(1, 2)) // the same ones each time

			for range each {
				token := shape.before

				for i, length := range shape.groups {
					if i > 0 {
						token += "-"
					}

					for range length {
						token += string(shape.signs[random.IntN(len(shape.signs))])
					}
				}

				if strings.ContainsAny(token, upper) && strings.ContainsAny(token, digits) {
					require.True(t, isCredential(token), token)
				}
			}
		})
	}

	for _, token := range []string{
		"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", "ghp_Instruct2Instruct2Instruct2Instruct22", "glpat-Llama-3-8B-Instruct", // as their services begin them
		"ABCD-EFGH-1234-IJKL", "Llama8BInstruct2", "Llama-3_8B-Instruct", "-Llama-3-8B-Instruct", "Llama--3-8B-Instruct", "Llama-Xqwzk-8B-Instruct", "Llama-3-8B-In1struct",
		"ab-1-Cd-2-Ef-3-Gh-4-ij",
	} {
		require.True(t, isCredential(token), token)
	}
}

// The path of a URL that a password logs in to, or that opens nothing, names data and projects.
func TestMask_LeavesPathsThatOpenNothing(t *testing.T) {
	t.Parallel()

	for value, log := range map[string]string{
		"https://oauth2:" + hub + "@gitlab.example/team/customer-churn-prediction":                   "data customer-churn-prediction",
		"https://" + hub + "@gitlab.example/Team-2026-Of-Churn/customer-churn-prediction":            "data Team-2026-Of-Churn/customer-churn-prediction",
		"https://ada:geheim/geheim@gitlab.example/Team-2026-Of-Churn/data":                           "data /Team-2026-Of-Churn/data",
		"DATA_URL=https://s.example/datasets/imagenet\nTOKEN=" + hub + "\n":                          "/mnt/datasets/imagenet/train",
		"DATA_URL=https://s.example/imagenet-2012-train/part-1?format=tfrecord\nTOKEN=" + hub + "\n": "reading imagenet-2012-train/part-1",
		"DATA_URL=https://s.example/data/My%20Customers%20Of%20The%20Year\nTOKEN=" + hub + "\n":      "/data/My Customers Of The Year/x",
		"DATA=https://huggingface.co/Qwen/Qwen2.5-0.5B-Instruct\nTOKEN=" + hub + "\n":                "loading Qwen/Qwen2.5-0.5B-Instruct",
		"DATA=https://huggingface.co/meta-llama/Meta-Llama-3-8B-Instruct\nTOKEN=" + hub + "\n":       "loading meta-llama/Meta-Llama-3-8B-Instruct",
		"DATA=https://huggingface.co/mistralai/Mixtral-8x7B-Instruct-v0.1\nTOKEN=" + hub + "\n":      "loading mistralai/Mixtral-8x7B-Instruct-v0.1",
		"DATA=https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct\nTOKEN=" + hub + "\n":       "loading HuggingFaceTB/SmolLM2-135M-Instruct",
		"DATA=https://huggingface.co/x/DeepSeek-R1-Distill-Qwen-1.5B\nTOKEN=" + hub + "\n":           "loading x/DeepSeek-R1-Distill-Qwen-1.5B",
		"DATA=https://s.example/weights/MobileNetV2_imagenet_224.h5\nTOKEN=" + hub + "\n":            "loading weights/MobileNetV2_imagenet_224.h5",
		"DATA=https://s.example/data/ILSVRC2012_img_train.tar\nTOKEN=" + hub + "\n":                  "reading /data/ILSVRC2012_img_train.tar",
		"DATA=https://s.example/data/Customers%20Of%202026%20All\nTOKEN=" + hub + "\n":               "reading /data/Customers Of 2026 All",
		"DATA=https://s.example/data/imagenet?version=2026-01-02T03:04:05Z\nTOKEN=" + hub + "\n":     "reading /data/imagenet",
		"DATA=https://s.example/data/imagenet?at=2026-01-02T03%3A04%3A05%2B01:00\nTOKEN=" + hub:      "reading /data/imagenet",
		"DATA=https://s.example/data/2026-01-02T03:04:05.678Z/imagenet\nTOKEN=" + hub + "\n":         "reading /data/2026-01-02T03:04:05.678Z/imagenet",
		"DATA=https://s.example/data/20260102T030405Z/imagenet\nTOKEN=" + hub + "\n":                 "reading /data/20260102T030405Z/imagenet",
		"DATA=https://s.example/data/mobilenetv2ssd300coco2017\nTOKEN=" + hub + "\n":                 "reading /data/mobilenetv2ssd300coco2017",
		"DATA=https://s.example/data/Customer-Churn-2026-Of-All.csv\nTOKEN=" + hub + "\n":            "reading /data/Customer-Churn-2026-Of-All.csv",
		"DATA=https://huggingface.co/x/Qwen2.5-Coder-32B-Instruct-GPTQ-Int4\nTOKEN=" + hub + "\n":    "loading x/Qwen2.5-Coder-32B-Instruct-GPTQ-Int4",
		"DATA=https://s.example/data/VOC2012_trainval.tar\nTOKEN=" + hub + "\n":                      "reading /data/VOC2012_trainval.tar",
		"https://s.example/data/CustomerChurnPrediction":                                             "/data/CustomerChurnPrediction",
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, log+"\n", masked(New([][]byte{[]byte(value)}), log+"\n"))
		})
	}
}

// A mask that hides the words of every log would make logs unreadable.
func TestMask_LeavesOrdinaryMembers(t *testing.T) {
	t.Parallel()

	const log = "INFO connecting to postgres at localhost:5432 as ada, tls verify-full, production\n" +
		"epoch 1 loss=0.5 val_loss=0.7 accuracy=0.93 true training 127.0.0.1 endpoint_url private_key_id us-east-1\n"

	for name, value := range map[string]string{
		"JSON": `{"debug":true,"host":"localhost","user":"ada","mode":"production","tls":"verify-full","private_key_id":"0123456789abcdef"}`,
		".env": "DEBUG=true # as always\nDB_HOST=localhost\nDB_USER=postgres\nDB_PORT=5432\nendpoint_url=\"\"\nREGION=us-east-1\nTOKEN=" + hub + "\n",
		"YAML": "training:\n  accuracy: true # the log of the training\n  host: 127.0.0.1\n  user: ada\n  epoch: 1\n",
		"TOML": "[production]\nhost = \"localhost\" # in production\nuser = \"postgres\"\n\"endpoint_url\" = \"x\"\n",
		"URL":  "postgres://postgres:" + hub + "@localhost:5432/production?sslmode=verify-full",
		"user": "postgres://ada@localhost:5432/postgres",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, log, masked(New([][]byte{[]byte(value)}), strings.SplitAfter(log, "\n")...))
		})
	}
}

// What JSON and Python print of a value in quotes: Go's encoder, and Python itself where
// there is one.
func TestMask_HidesWhatLanguagesPrint(t *testing.T) {
	t.Parallel()

	values := []string{
		"gehéim-pässwört-1234", "abc\x1bdefgh-0123456789", "a&b<c>d-0123456789", "smile-\U0001f600-0123456789", "x\u2028line-\u00a0-\u200b-\x7f-0123456789",
		`with-"-and-'-and-\-0123456789`, "one-'-of-them-0123456789", "tab\tback\b\f\v\a-0123456789", "€uro-\x00-0123456789",
	}

	show := func(t *testing.T, m *Mask, printed string) {
		t.Helper()

		in := strings.TrimRight(strings.TrimLeft(printed, `b"'`), `"'`)
		shown := masked(m, printed)
		require.Equal(t, len(in), strings.Count(shown, "*"), "%s shows as %s", printed, shown)
	}

	for _, value := range values {
		t.Run(value, func(t *testing.T) {
			t.Parallel()

			text, err := json.Marshal(value)
			require.NoError(t, err)
			show(t, New([][]byte{[]byte(value)}), string(text))

			var plain strings.Builder

			encoder := json.NewEncoder(&plain)
			encoder.SetEscapeHTML(false)
			require.NoError(t, encoder.Encode(value))
			show(t, New([][]byte{[]byte(value)}), strings.TrimSpace(plain.String()))
		})
	}

	python, err := exec.LookPath("python3")
	if err != nil {
		return // the cases above hold without it
	}

	const program = `import json, sys
for v in json.load(sys.stdin):
    print(json.dumps([json.dumps(v), json.dumps(v, ensure_ascii=False), repr(v), ascii(v), repr(v.encode())]))`

	in, err := json.Marshal(values)
	require.NoError(t, err)

	cmd := exec.CommandContext(t.Context(), python, "-c", program)
	cmd.Stdin = strings.NewReader(string(in))
	out, err := cmd.Output()
	require.NoError(t, err)

	for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		var printed []string
		require.NoError(t, json.Unmarshal([]byte(line), &printed))

		for _, text := range printed {
			show(t, New([][]byte{[]byte(values[i])}), text)
		}
	}
}

// A file of the largest size has as many secrets as fit, and each is hidden. What its fields
// make together stays small, so that a worker has memory left, and time.
func TestMask_HidesEachOfManyMembers(t *testing.T) {
	t.Parallel()

	for name, line := range map[string]string{
		".env":                "KEY_%d=\"token-%08d\" # of ada, for the staging one\n",
		"a connection string": "Key%d=token-%08d;",
		"a query":             "k%d=token-%08d&",
		"flow of YAML":        "key_%d: token-%08d, ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var value, printed, want strings.Builder

			for i := 0; value.Len() < maxEscaped-2*len(line); i++ {
				fmt.Fprintf(&value, line, i, i)
				fmt.Fprintf(&printed, "%08d is token-%08d\n", i, i)
				fmt.Fprintf(&want, "%08d is **************\n", i)
			}

			text := value.String()
			if name == "flow of YAML" {
				text = "{" + text + "}"
			}

			began := time.Now()

			m := New([][]byte{[]byte(text)})
			require.Equal(t, want.String(), masked(m, strings.SplitAfter(printed.String(), "\n")...))
			require.Less(t, time.Since(began), 30*time.Second)
			require.Less(t, len(m.values.nodes), 1<<20, "24 MiB")
		})
	}
}

// Whatever a value is, its members are shorter than it, and finding them ends.
func TestMembersOf_AnyValue(t *testing.T) {
	t.Parallel()

	piece := rapid.SampledFrom([]string{
		"{", "}", "[", "]", "\"", "'", "\\", ":", "=", ": ", "- ", "\n", "\t", " ", "#", " #", ";", "&", "*a", "&a ", "<<", "|", ">", "!!x ", "%",
		"://", "@", "password ", "key", "longer-value", "---\n", "...", "\u00e9", "\x00", "\xff", "?", ",", "%2F", "Bearer ",
	})

	rapid.Check(t, func(t *rapid.T) {
		value := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "value"), "")

		all := 0

		for _, part := range membersOf([]byte(value)) {
			all += len(part)
			require.GreaterOrEqual(t, len(part), minMaskedLine)
			require.Less(t, len(part), len(value))
		}

		require.LessOrEqual(t, all, maxMembers)
	})
}
