package httphead

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Uncounted is how long a client over HTTP/2 may take for the rest of an answer for which nobody is counted, such as
// that it has no valid token, or for which a place is taken that is everybody's (WhenSoonOver). Its stream is reset then.
const Uncounted = 10 * time.Second

// streamKey is where a request's context has its *stream.
type streamKey struct{}

// followedStream is a request over HTTP/2, with what is to be done once the server keeps nothing of it any more.
type followedStream struct {
	mu   sync.Mutex // guards what follows
	then []func()
	soon bool // the client has Uncounted for the rest of the answer
	over bool
}

// Behind has what requests take given back once the server keeps nothing of them, as far as that is done by WhenOver.
// Over HTTP/1 that is when next returns: there is one request on a connection, and what nobody reads of it stays with
// the kernel. Over HTTP/2 net/http keeps a stream behind its handler, with what came of a body that nobody has read,
// the last 4 KiB of an answer and a goroutine, until the client has taken all of the answer; and it sets that no time.
// So a client that gives its streams no window would have any number of them kept for nothing. Here it has within for
// it, and if nothing waits for the end, Uncounted; then the stream is reset.
//
// It must be around all that calls WhenOver. The handler does not wait for the client.
func Behind(within time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !framed(w, r) {
			next.ServeHTTP(w, r)
			return
		}
		s := &followedStream{}
		defer s.followStream(w, r, within) // after a panic, too
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), streamKey{}, s)))
	})
}

// WhenOver is leave, but does it only when the server keeps nothing more of the request of ctx. It is to be called
// once, as leave, and does not wait.
func WhenOver(ctx context.Context, leave func()) func() {
	return whenOver(ctx, false, leave)
}

// WhenSoonOver is WhenOver for who can't be told from others, and has what they all have: the client has no longer than
// Uncounted for the rest of the answer.
func WhenSoonOver(ctx context.Context, leave func()) func() {
	return whenOver(ctx, true, leave)
}

func whenOver(ctx context.Context, soon bool, leave func()) func() {
	s, ok := ctx.Value(streamKey{}).(*followedStream)
	if !ok {
		return leave
	}
	return func() {
		if !s.addEnd(soon, leave) {
			leave()
		}
	}
}

// addEnd reports whether it is not too late to wait for the end.
func (s *followedStream) addEnd(soon bool, leave func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.then, s.soon = append(s.then, leave), s.soon || soon
	}
	return !s.over
}

// followStream waits for the end of a stream whose handler returns now, elsewhere. net/http keeps what it knows of a stream as
// long as that has a time, and gives one to a stream that is over already. So that gets none; and since a stream may end
// while it is given one, its body is closed at its end. Not before: what came of the body then would reset the stream,
// and the client would miss its answer.
func (s *followedStream) followStream(w http.ResponseWriter, r *http.Request, within time.Duration) {
	control := http.NewResponseController(w)
	s.mu.Lock()
	waits, soon := len(s.then) > 0, s.soon
	s.mu.Unlock()
	if !waits || soon {
		within = min(within, Uncounted)
	}
	if r.Context().Err() == nil {
		_ = control.SetWriteDeadline(time.Now().Add(within)) // a writer of tests keeps nothing
	}
	ended := streamEnd(w)
	switch {
	case !waits:
		s.endStream()
	case ended == nil: // it is not net/http's, or not as it was: then what is left has to be taken here
		_ = control.Flush() // who is gone needs it no more
		s.endStream()
	default:
		safego.Go(func() {
			<-ended
			_ = r.Body.Close()
			s.endStream()
		})
	}
}

// endStream does what waits.
func (s *followedStream) endStream() {
	s.mu.Lock()
	then := s.then
	s.then, s.over = nil, true
	s.mu.Unlock()
	for _, leave := range then {
		leave()
	}
}

// framed tells whether a request came over HTTP/2. The version alone does not: of HTTP/1 net/http passes on what begins
// HTTP/2, as a request of that. There a handler may take the connection over, and only there.
func framed(w http.ResponseWriter, r *http.Request) bool {
	if _, whole := innermost(w).(http.Hijacker); whole {
		return false
	}
	return r.ProtoMajor >= 2
}

// innermost is the writer below others.
func innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

// streamEnd tells when net/http has closed a stream: the one thing that says so is what it calls CloseNotify. A
// request's context ends before. nil: there is no such thing.
func streamEnd(w http.ResponseWriter) <-chan bool {
	if server, ok := innermost(w).(interface{ CloseNotify() <-chan bool }); ok {
		return server.CloseNotify()
	}
	return nil
}
