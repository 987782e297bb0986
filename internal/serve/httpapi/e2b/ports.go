package e2b

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// portHost ends the host names under which the transport knows sandboxes' ports. It
// is never resolved.
const portHost = ".sandbox.invalid"

// visitCost is what a visit of a port takes, in bytes, beside the heads of its request and its
// answer: its goroutines, and the buffers by which both ways are passed on.
const visitCost = 64 << 10

// Bounds of what visitors of all ports of a sandbox have of it together.
const (
	maxVisits = 64          // connections, also those that were upgraded, until both sides have closed them
	visitWait = time.Second // for one of them to be closed
)

// visits counts the connections of visitors, by sandbox.
type visits struct {
	mu    sync.Mutex // guards slots
	slots map[string]*visitSlots
}

type visitSlots struct {
	taken chan struct{}
	users int // who have or wait for one, so that the last one forgets the slots
}

// errVisited tells that a sandbox has as many visitors as it may.
var errVisited = fault.Exhausted(time.Second, "the ports of this sandbox have %d connections from outside already; try again", maxVisits)

// enterVisit waits for one of a sandbox's connections. leave gives it back, once.
func (v *visits) enterVisit(ctx context.Context, id string) (leave func(), err error) {
	v.mu.Lock()
	s := v.slots[id]
	if s == nil {
		s = &visitSlots{taken: make(chan struct{}, maxVisits)}
		v.slots[id] = s
	}
	s.users++
	v.mu.Unlock()
	forget := func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if s.users--; s.users == 0 {
			delete(v.slots, id)
		}
	}
	timer := time.NewTimer(visitWait)
	defer timer.Stop()
	select {
	case s.taken <- struct{}{}:
		return sync.OnceFunc(func() {
			<-s.taken
			forget()
		}), nil
	case <-timer.C:
		err = errVisited
	case <-ctx.Done():
		err = ctx.Err()
	}
	forget()
	return nil, err
}

// portVisit is a connection to a port that gives its place back when it is closed.
type portVisit struct {
	net.Conn
	leave func()
}

// CloseWrite ends one half, where the connection can: a visitor who has said all is still answered.
func (v *portVisit) CloseWrite() error {
	if half, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return v.Close()
}

// Close implements net.Conn.
func (v *portVisit) Close() error {
	defer v.leave()
	return v.Conn.Close()
}

// portTransport speaks HTTP to servers inside of sandboxes. Connections are kept for
// a little while, a few of each port: each is a stream of the guest's.
func portTransport(sandboxes backend.Sandboxes) http.RoundTripper {
	all := &visits{slots: map[string]*visitSlots{}}
	return &httphead.Transport{To: &http.Transport{
		DialContext: safego.ShieldDial(func(ctx context.Context, _, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			number, err := strconv.Atoi(port)
			if err != nil {
				return nil, err
			}
			id := strings.TrimSuffix(host, portHost)
			leave, err := all.enterVisit(ctx, id)
			if err != nil {
				return nil, err
			}
			conn, err := sandboxes.Dial(ctx, id, number)
			if err != nil {
				leave()
				return nil, err
			}
			return &httphead.Conn{Conn: &portVisit{conn, leave}}, nil
		}),
		DisableCompression:     true,
		MaxIdleConnsPerHost:    4,
		MaxConnsPerHost:        maxVisits,
		IdleConnTimeout:        15 * time.Second,
		MaxResponseHeaderBytes: httphead.Most,
	}}
}

// servePort passes a request to a server inside: any method, streams, and what is
// upgraded (WebSockets). The policy is asked with each connection.
func (d *Data) servePort(w http.ResponseWriter, r *http.Request, box *sandbox.Sandbox, to target) {
	traffic := d.cfg.Access.Traffic(to.sandbox)
	if traffic != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get(headerTraffic)), []byte(traffic)) != 1 {
		writeError(w, http.StatusForbidden, "this sandbox's ports are not public: send its traffic access token as "+headerTraffic)
		return
	}
	if box.Publishes(to.port) { // who asks for what is not open keeps nothing alive
		d.cfg.Sandboxes.Touch(to.sandbox)
	}
	ctx, leave := d.cfg.Room.Enter(r.Context(), backend.Visitors(roomOf(box)))
	defer leave()
	if backend.Take(ctx, visitCost+int(httphead.Cost(len(r.RequestURI)+len(r.Host), r.Header))) != nil || backend.Buffered(ctx, r) != nil {
		writeFull(w)
		return
	}
	if box.Publishes(to.port) {
		backend.AwaitThaw(ctx, box) // with the room that it takes: any number of visitors may come meanwhile
	}
	passing, r := httphead.NewPassing(r)
	r = r.WithContext(httphead.With(ctx, backend.Account(ctx)))
	access := []string{d.cfg.Access.Token(to.sandbox), traffic, d.cfg.Access.Contexts(to.sandbox)}
	proxy := &httputil.ReverseProxy{
		Transport:     d.ports,
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme = "http"
			p.Out.URL.Host = to.sandbox + portHost + ":" + strconv.Itoa(to.port)
			p.Out.URL.RawQuery = p.In.URL.RawQuery // as it came: what it means is the server's affair
			p.Out.Host = p.In.Host
			takeTokens(p.Out, access)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { d.portError(w, r, to, err) },
		ErrorLog:     slog.NewLogLogger(d.cfg.Log.Handler(), slog.LevelDebug),
	}
	out := &httphead.Answer{ResponseWriter: w, Within: d.cfg.Untaken}
	passing.Answer(out, func(w http.ResponseWriter) { proxy.ServeHTTP(w, r) }) // before what it takes is given back
}

// writeFull tells a visitor that there is no room for its request or for the answer to it.
func writeFull(w http.ResponseWriter) {
	tellRetry(w.Header(), http.StatusTooManyRequests, fault.Exhausted(time.Second, ""))
	writeError(w, http.StatusTooManyRequests, fmt.Sprintf("the visits of this sandbox's ports that are under way hold as much of the daemon's memory as they may (%d MiB with those of all sandboxes of its owner); try again", backend.RoomEach>>20))
}

// portError answers where no server inside did.
func (d *Data) portError(w http.ResponseWriter, r *http.Request, to target, err error) {
	httphead.Unsent(w)
	box, gone := d.living(to.sandbox)
	switch {
	case r.Context().Err() != nil: // nobody is there to be told
	case gone != nil:
		writeGone(w, d, to.sandbox)
	case errors.Is(err, httphead.ErrFull):
		writeFull(w)
	case errors.Is(err, errVisited):
		tellRetry(w.Header(), http.StatusTooManyRequests, err)
		writeError(w, http.StatusTooManyRequests, failureOf(err).Message)
	case errors.Is(err, fault.ErrForbidden):
		writeError(w, http.StatusForbidden, portRefusal(failureOf(err).Message, to.port))
	case errors.Is(err, fault.ErrConflict):
		message := failureOf(err).Message
		if held := heldSentence(box.Waits()); held != "" {
			message = held
		}
		writeError(w, http.StatusConflict, message)
	default:
		message := TextPortClosed
		if !errors.Is(err, fault.ErrUnavailable) { // it is, and speaks no HTTP, or has gone in the middle
			message = fmt.Sprintf("The sandbox is running and port %d is open, but what listens there gave no whole answer of HTTP with a header of at most %d KiB", to.port, httphead.Most>>10)
		}
		writeObject(w, http.StatusBadGateway, map[string]any{"sandboxId": to.sandbox, "message": message, "port": to.port, "code": http.StatusBadGateway})
	}
}

// portRefusal says what would allow it, unless the refusal has said so already.
func portRefusal(sentence string, port int) string {
	if strings.Contains(sentence, "published_ports") {
		return sentence
	}
	return fmt.Sprintf("%s; the policy's line for it is published_ports: [%d]", sentence, port)
}
