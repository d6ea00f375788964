package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/agent/secrets"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// A value goes into the sealed text, and is in no answer, no log, no audit entry.
func TestSecrets_TheValueIsNowhereButSealed(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "key")
	_, err := secrets.Make(path)
	require.NoError(t, err)

	keys, err := secrets.Read(path)
	require.NoError(t, err)

	const value = "hf_0123456789abcdef"

	store, log := apitest.Sample(t), &safeLog{}
	admin := token(t, store, "admin")
	r := setupDeps(t, api.Deps{Store: store.Store, Temporal: store, Keys: keys, Log: slog.New(slog.NewTextHandler(log, nil))})

	var said strings.Builder

	put := func(name, body string) int {
		status, answer := r.text("PUT", "/api/v1/secrets/"+name, body, admin, asJSON)
		said.WriteString(answer)

		return status
	}

	in64 := base64.StdEncoding.EncodeToString([]byte(value))
	require.Equal(t, http.StatusOK, put("hub", `{"value": "other-`+value+`"}`))
	require.Equal(t, http.StatusOK, put("hub", `{"value": "`+in64+`", "encoding": "base64"}`))

	for _, body := range []string{
		`{"value": "` + value, `{"value": ["` + value + `"]}`, `{"value": {"` + value + `": 1}}`, `"` + value + `"`, value, `{"value": "x", "encoding": "` + value + `"}`,
		`{"value": "` + value + `", "encoding": "base64"}`, `{"value": ""}`, `{}`, `{"value": "` + strings.Repeat(value, 4000) + `"}`,
		`{"value": "` + base64.StdEncoding.EncodeToString(make([]byte, berth.MaxSecretBytes+1)) + `", "encoding": "base64"}`,
	} {
		require.Equal(t, http.StatusBadRequest, put("hub", body), body[:min(len(body), 80)])
	}

	require.Equal(t, http.StatusRequestEntityTooLarge, put("hub", `{"value": "`+strings.Repeat(value, 100_000)+`"}`))
	require.Equal(t, http.StatusBadRequest, put("-hub", `{"value": "`+value+`"}`))

	status, answer := r.text("GET", "/api/v1/secrets", "", admin)
	said.WriteString(answer)
	require.Equal(t, http.StatusOK, status)

	var list struct {
		Data []struct{ Name, Key, UpdatedBy string }
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &list))
	require.Len(t, list.Data, 1)
	require.Equal(t, "hub", list.Data[0].Name)
	require.Equal(t, keys.Public(), list.Data[0].Key)
	require.Contains(t, answer, `"version":2`)

	sealed, err := store.GetSecret(t.Context(), "hub")
	require.NoError(t, err)
	opened, err := keys.Open(sealed)
	require.NoError(t, err)
	require.Equal(t, value, string(opened))

	require.Contains(t, fmt.Sprint(audits(store)), "PUT /api/v1/secrets/:name hub")

	for where, text := range map[string]string{
		"an answer": said.String(), "the log": log.String(), "the audit log": fmt.Sprint(audits(store)), "the events": store.Text("SELECT coalesce(string_agg(e::text, ''), '') FROM events e"),
	} {
		require.NotContains(t, text, value[3:], where)
		require.NotContains(t, text, in64[:20], where)
	}
}

// addSecret stores a secret that is sealed to a key of no host.
func addSecret(t *testing.T, store *apitest.Store) {
	t.Helper()

	_, err := store.PutSecret(t.Context(), berth.SealedSecret{Name: "hub", Key: "age1old", Ciphertext: []byte("age-encryption.org/v1")}, "me")
	require.NoError(t, err)
}

func TestSecrets_SaysWhatToDo(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	addSecret(t, store)
	store.SweepIs(berth.SweepRunning)
	store.Exec(`UPDATE sweeps SET spec = (spec::jsonb || '{"secrets": [{"name": "hub", "file": "/run/secrets/hub"}]}')::json`)

	r.requireProblem(http.StatusConflict, "conflict", "berth secret key FILE", "PUT", "/api/v1/secrets/hub", `{"value": "x"}`, asJSON)
	r.requireProblem(http.StatusConflict, "conflict", "is mounted", "DELETE", "/api/v1/secrets/hub", "")
	r.requireProblem(http.StatusNotFound, "not_found", "no secret hug", "DELETE", "/api/v1/secrets/hug", "")

	r.want(http.StatusNoContent, "DELETE", "/api/v1/secrets/hub?force=true", "")
	require.Zero(t, store.Count("secrets"))
}

// A sweep is accepted when its secrets are stored and a machine can open them.
func TestSecrets_OfASweep(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	addSecret(t, store)
	file := apitest.SweepFile + "\nsecrets: [{name: hub, file: /run/secrets/hub}]\n"

	refused := func(path, file, says string) {
		t.Helper()

		body := r.want(http.StatusUnprocessableEntity, "POST", path, file, "Content-Type: application/yaml", "Idempotency-Key: a")
		require.Contains(t, body, `"code":"E_SECRET"`)
		require.Contains(t, body, says)
	}

	for _, path := range []string{"/api/v1/sweeps", "/api/v1/sweep-previews"} {
		refused(path, strings.Replace(file, "name: hub,", "name: hug,", 1), `there is no secret \"hug\" (there are: hub); this server has no key to store one with`)
		refused(path, file, `every host lacks the key of secret \"hub\"; start a worker with --secrets-key and a file that holds the private key of age1old`)
	}

	store.Exec("UPDATE hosts SET secret_keys = '{age1new,age1old}'")

	body := r.want(http.StatusCreated, "POST", "/api/v1/sweeps", file, "Content-Type: application/yaml", "Idempotency-Key: a")
	require.Contains(t, body, `"secrets":[{"name":"hub","file":"/run/secrets/hub"}]`)
}

// The mask leaves out the space around a value, because programs trim their input:
// of "123\n", such as a file by --from-file, three bytes are left.
func TestSecrets_WarnsOfWhatTheMaskDoesNotHide(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "key")
	_, err := secrets.Make(path)
	require.NoError(t, err)

	keys, err := secrets.Read(path)
	require.NoError(t, err)

	store := apitest.Sample(t)
	r := setupDeps(t, api.Deps{Store: store.Store, Temporal: store, Keys: keys})

	for value, warns := range map[string]bool{`123`: true, `123\n`: true, `\r\n123`: true, `1234`: false, `1234\n`: false} {
		body := r.want(http.StatusOK, "PUT", "/api/v1/secrets/pin", `{"value": "`+value+`"}`, asJSON)
		require.Equal(t, warns, strings.Contains(body, "W_SECRET_SHORT"), "%q: %s", value, body)
	}
}
