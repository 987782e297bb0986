package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// messageTimeout is how long a message may take to come whole.
const messageTimeout = 2 * time.Minute

// messageCopies is how often a message is in memory beside its body: as the library reads it again, and as its
// fields.
const messageCopies = 2

// maxBeginning is how long what a session begins with may be, in bytes: who its client is, and what that can do. The
// library keeps it for as long as the session lives.
const maxBeginning = 64 << 10

// messageKey is where a request's verified token has its message.
const messageKey = "message"

// roomyMessage is what one request brought, and what is answered. It has its room until both the request and the
// call that it began are over: a client may leave, and the call goes on.
type roomyMessage struct {
	share context.Context //nolint:containedctx // of the one request, for its room
	leave func()

	mu    sync.Mutex // guards users
	users int        // 0: it is over
}

// holdMessage counts one more user; false: it is over.
func (m *roomyMessage) holdMessage() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users == 0 {
		return false
	}
	m.users++
	return true
}

func (m *roomyMessage) releaseMessage() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users--; m.users == 0 {
		m.leave()
	}
}

// limitRequests has a request hold no more than its token may: it is read whole here, in time, and counted with what it
// becomes.
func (s *Server) limitRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := auth.TokenInfoFromContext(r.Context())
		if info == nil {
			http.Error(w, "show a token", http.StatusUnauthorized)
			return
		}
		share, leave := s.cfg.Room.Enter(r.Context(), info.UserID)
		m := &roomyMessage{share: share, leave: leave, users: 1}
		defer m.releaseMessage()
		info.Extra[messageKey] = m
		body, err := readMessage(share, w, r)
		_, tooLarge := errors.AsType[*http.MaxBytesError](err)
		switch {
		case errors.Is(err, fault.ErrExhausted):
			backend.WriteExhausted(w, err)
			return
		case tooLarge:
			http.Error(w, "the message is too large", http.StatusRequestEntityTooLarge)
			return
		case err != nil:
			http.Error(w, "the message did not come whole", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(backend.Prompt(w), r) // what it is answered has its room until it is taken
	})
}

func readMessage(share context.Context, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(messageTimeout)) == nil { // a writer of tests has no connection
		defer control.SetReadDeadline(time.Time{}) //nolint:errcheck // the connection is gone then
	}
	most := int64(maxBody)
	if r.Header.Get("Mcp-Session-Id") == "" {
		most = maxBeginning
	}
	body, err := io.ReadAll(backend.Held(share, http.MaxBytesReader(w, r.Body, most)))
	if err != nil {
		return nil, err
	}
	if err := backend.Take(share, messageCopies*len(body)); err != nil {
		return nil, err
	}
	return body, backend.TakeDecoded(share, body, nil)
}

// counted has a call take room of its message's, and its result, too.
func counted(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		m := messageOf(req)
		if m == nil {
			return next(ctx, method, req) // not over HTTP, or not from the client
		}
		if !m.holdMessage() {
			if strings.HasPrefix(method, "notifications/") {
				return next(ctx, method, req)
			}
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the request is over"}
		}
		defer m.releaseMessage()
		result, err := next(backend.Sharing(ctx, m.share), method, req)
		if err != nil {
			return nil, err
		}
		if err := backend.TakeAnswer(m.share, result); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fault.Sentence(err, "there is no room for the answer")}
		}
		return result, nil
	}
}

// messageOf is the message that a request came with; nil: it has none.
func messageOf(req sdk.Request) *roomyMessage {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	m, _ := extra.TokenInfo.Extra[messageKey].(*roomyMessage)
	return m
}
