package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

// codeSecretShort is the warning of a value that is not masked in logs.
const codeSecretShort = "W_SECRET_SHORT"

// ListSecrets is GET /secrets.
func (h *handlers) ListSecrets(ctx context.Context, _ openapi.ListSecretsRequestObject) (openapi.ListSecretsResponseObject, error) {
	list, err := h.deps.Store.ListSecrets(ctx)

	return openapi.ListSecrets200JSONResponse{Data: all(list, toSecret)}, err
}

// PutSecret is PUT /secrets/{name}. The value is only in the sealed text: neither
// an error nor the answer contains it.
func (h *handlers) PutSecret(ctx context.Context, r openapi.PutSecretRequestObject) (openapi.PutSecretResponseObject, error) {
	if h.deps.Keys == nil {
		return nil, berth.Errorf(berth.KindConflict, "this server has no key to seal secrets with: make one with `berth secret key FILE`, "+
			"and start the server and its workers with --secrets-key FILE (docs/production.md)")
	}

	value, err := valueOf(*r.Body)
	if err != nil {
		return nil, err
	}

	sealed, err := h.deps.Keys.Seal(r.Name, value)
	if err != nil {
		return nil, err
	}

	stored, err := h.deps.Store.PutSecret(ctx, sealed, caller(ctx).name)

	out := openapi.PutSecret200JSONResponse{Secret: toSecret(stored)}
	if len(bytes.TrimSpace(value)) < berth.MinMaskedBytes { // as the mask trims it
		out.Warnings = toItems([]berth.Problem{{Code: codeSecretShort, Pointer: "/value", Message: fmt.Sprintf(
			"a value of less than %d bytes, without the space around it, is not masked in logs, as it is a part of too many words", berth.MinMaskedBytes)}})
	}

	return out, err
}

// DeleteSecret is DELETE /secrets/{name}.
func (h *handlers) DeleteSecret(ctx context.Context, r openapi.DeleteSecretRequestObject) (openapi.DeleteSecretResponseObject, error) {
	return openapi.DeleteSecret204Response{}, h.deps.Store.DeleteSecret(ctx, r.Name, r.Params.Force)
}

// valueOf decodes the value of a secret.
func valueOf(body openapi.SecretValue) ([]byte, error) {
	value := []byte(body.Value)

	if body.Encoding == openapi.SecretBase64 {
		var err error
		if value, err = base64.StdEncoding.DecodeString(body.Value); err != nil {
			return nil, badParameter("/value", "is not base64 (RFC 4648 section 4)")
		}
	}

	if len(value) == 0 || len(value) > berth.MaxSecretBytes {
		return nil, badParameter("/value", fmt.Sprintf("has %d bytes; a secret has 1 byte to %s", len(value), berth.BytesText(berth.MaxSecretBytes)))
	}

	return value, nil
}

func toSecret(s berth.Secret) openapi.Secret {
	return openapi.Secret{
		Name: s.Name, Version: int32(s.Version), Key: s.Key, //nolint:gosec // G115: counts calls
		CreatedAt: s.CreatedAt, CreatedBy: s.CreatedBy, UpdatedAt: s.UpdatedAt, UpdatedBy: s.UpdatedBy,
	}
}
