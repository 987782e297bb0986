package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
)

// Tokens tells whose a secret is. *token.Book is one.
type Tokens interface {
	Check(secret string) (token.Token, bool)
}

var _ Tokens = (*token.Book)(nil)

// secretKey is where the verified secret is kept for the backend, which checks it again
// with every call: a token that is revoked is of no use from then on.
const secretKey = "secret"

// maxBody bounds one message of a client, in bytes: a file in base64 is in it.
const maxBody = 4 << 20

// Handler serves peers over streamable HTTP to those who show a token, as Authorization:
// Bearer; refused, which may be nil, hears of everybody else. A page of another origin is
// refused, and so is one that has the name of this machine lead here; a peer without a
// request for half an hour ends.
func (s *Server) Handler(tokens Tokens, refused func(context.Context)) http.Handler {
	streams := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk }, &sdk.StreamableHTTPOptions{
		SessionTimeout: peerTimeout, MaxRequestBodyBytes: maxBody,
	})
	verify := func(_ context.Context, secret string, _ *http.Request) (*auth.TokenInfo, error) {
		t, ok := tokens.Check(secret)
		if !ok {
			return nil, fmt.Errorf("%w: give a valid one, as Authorization: Bearer TOKEN; cofferdam token create makes one on the daemon's host", auth.ErrInvalidToken)
		}
		return &auth.TokenInfo{UserID: t.ID, Expiration: t.Expires, Extra: map[string]any{secretKey: secret}}, nil
	}
	known := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})
	return http.NewCrossOriginProtection().Handler(tellRefused(tokens, refused, known(s.limitRequests(single(s.endWithSession(streams))))))
}

// tellRefused has refused hear of requests that show no valid token. They are turned away by next.
func tellRefused(tokens Tokens, refused func(context.Context), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		_, known := tokens.Check(strings.TrimSpace(secret))
		if refused != nil && (!known || !strings.EqualFold(scheme, "Bearer")) {
			refused(r.Context())
		}
		next.ServeHTTP(w, r)
	})
}

// mostSpace is how much white space may stand before a message.
const mostSpace = 1 << 10

// single refuses lists of messages, which an old version of the protocol has: a token has a
// pace by its requests, and one request would be thousands.
func single(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := bufio.NewReader(r.Body)
		for range mostSpace {
			first, err := body.ReadByte()
			switch {
			case err == nil && (first == ' ' || first == '\t' || first == '\n' || first == '\r'):
				continue
			case err == nil && first != '[':
				_ = body.UnreadByte() // it was just read
			case err == nil:
				http.Error(w, "send messages one by one: lists of them are not taken", http.StatusBadRequest)
				return
			}
			r.Body = struct {
				io.Reader
				io.Closer
			}{body, r.Body}
			next.ServeHTTP(w, r)
			return
		}
		http.Error(w, "the message begins with too much white space", http.StatusBadRequest)
	})
}

// endWithSession has the calls of a peer end when its client ends the session: that would wait for
// them otherwise.
func (s *Server) endWithSession(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			user := ""
			if info := auth.TokenInfoFromContext(r.Context()); info != nil {
				user = info.UserID
			}
			s.endCalls(user, r.Header.Get("Mcp-Session-Id"))
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) endCalls(user, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.peers {
		if p.user == user && p.session.ID() == session && session != "" {
			p.end(errGone)
		}
	}
}
