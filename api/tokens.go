package api

import (
	"context"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/store/postgres"
)

// ListTokens is GET /tokens.
func (h *handlers) ListTokens(ctx context.Context, _ openapi.ListTokensRequestObject) (openapi.ListTokensResponseObject, error) {
	tokens, err := h.deps.Store.ListTokens(ctx)

	return openapi.ListTokens200JSONResponse{Data: all(tokens, toToken)}, err
}

// CreateToken is POST /tokens.
func (h *handlers) CreateToken(ctx context.Context, r openapi.CreateTokenRequestObject) (openapi.CreateTokenResponseObject, error) {
	text, token, err := MakeToken(ctx, h.deps.Store, berth.Token{Name: r.Body.Name, Role: string(r.Body.Role)}, time.Duration(r.Body.ExpiresInSeconds)*time.Second)

	return openapi.CreateToken201JSONResponse{Token: toToken(token), Secret: text}, err
}

// MakeToken stores a token that is valid for life, 0 = for ever, and returns its
// text, which is shown once. The first token must be an admin's: from then on every
// call needs one, and only an admin's can make more. Errors: conflict.
func MakeToken(ctx context.Context, store *postgres.Store, token berth.Token, life time.Duration) (text string, made berth.Token, err error) {
	if token.Role != string(openapi.Admin) {
		tokens, err := store.CountTokens(ctx)
		if err != nil {
			return "", token, err
		}

		if tokens.Made == 0 {
			return "", token, berth.Errorf(berth.KindConflict, "the first token must have the role admin: from then on every call needs a token, "+
				"and only an admin's can make more")
		}
	}

	text, hash, prefix := NewToken()
	token.Prefix = prefix
	made, err = store.CreateToken(ctx, token, life, hash)

	return text, made, err
}

// RevokeToken is DELETE /tokens/{id}.
func (h *handlers) RevokeToken(ctx context.Context, r openapi.RevokeTokenRequestObject) (openapi.RevokeTokenResponseObject, error) {
	if len(r.ID) < berth.DeletePrefix {
		return nil, berth.Errorf(berth.KindInvalid, "%q is too short to revoke a token: give at least the %d characters of its id that lists show; a name is none",
			r.ID, berth.DeletePrefix)
	}

	tokens, err := h.deps.Store.ListTokens(ctx)
	if err != nil {
		return nil, err
	}

	var found []berth.Token

	for _, token := range tokens {
		if strings.HasPrefix(token.ID, strings.ToLower(r.ID)) {
			found = append(found, token)
		}
	}

	token, err := one(found, "token", r.ID)
	if err != nil {
		return nil, err
	}

	return openapi.RevokeToken204Response{}, h.deps.Store.RevokeToken(ctx, token.ID)
}
