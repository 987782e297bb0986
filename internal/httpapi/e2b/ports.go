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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
)

// portHost ends the host names under which the transport knows sandboxes' ports. It
// is never resolved.
const portHost = ".sandbox.invalid"

// visitCost is what a visit of a port takes, in bytes, beside the heads of its request and its
// answer: its goroutines, and the buffers by which both ways are passed on.
const visitCost = 64 << 10

// portTransport speaks HTTP to servers inside of sandboxes. Connections are kept for
// a little while, a few of each port: each is a stream of the guest's.
func portTransport(sandboxes backend.Sandboxes) http.RoundTripper {
	return &httphead.Transport{To: &http.Transport{
		DialContext: errand.ShieldDial(func(ctx context.Context, _, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			number, err := strconv.Atoi(port)
			if err != nil {
				return nil, err
			}
			conn, err := sandboxes.Dial(ctx, strings.TrimSuffix(host, portHost), number)
			if err != nil {
				return nil, err
			}
			return &httphead.Conn{Conn: conn}, nil
		}),
		DisableCompression:     true,
		MaxIdleConnsPerHost:    4,
		MaxConnsPerHost:        64,
		IdleConnTimeout:        15 * time.Second,
		MaxResponseHeaderBytes: httphead.Most,
	}}
}

// servePort passes a request to a server inside: any method, streams, and what is
// upgraded (WebSockets). The policy is asked with each connection.
func (d *Data) servePort(w http.ResponseWriter, r *http.Request, box *sandbox.Sandbox, to target) {
	if token := d.cfg.Access.Traffic(to.sandbox); token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get(headerTraffic)), []byte(token)) != 1 {
		writeError(w, http.StatusForbidden, "this sandbox's ports are not public: send its traffic access token as "+headerTraffic)
		return
	}
	if box.Publishes(to.port) { // who asks for what is not open keeps nothing alive
		d.cfg.Sandboxes.Touch(to.sandbox)
	}
	ctx, leave := d.cfg.Room.Enter(r.Context(), backend.Visitors(roomOf(box)))
	defer leave()
	if err := backend.Take(ctx, visitCost+int(httphead.Cost(len(r.RequestURI)+len(r.Host), r.Header))); err != nil {
		writeFull(w)
		return
	}
	r = r.WithContext(httphead.With(ctx, backend.Account(ctx)))
	own := d.cfg.Access.Token(to.sandbox)
	proxy := &httputil.ReverseProxy{
		Transport:     d.ports,
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme = "http"
			p.Out.URL.Host = to.sandbox + portHost + ":" + strconv.Itoa(to.port)
			p.Out.URL.RawQuery = p.In.URL.RawQuery // as it came: what it means is the server's affair
			p.Out.Host = p.In.Host
			stripSecrets(p.Out.Header, own)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { d.portError(w, r, to, err) },
		ErrorLog:     slog.NewLogLogger(d.cfg.Log.Handler(), slog.LevelDebug),
	}
	out := &httphead.Answer{ResponseWriter: w, Within: d.cfg.Untaken}
	proxy.ServeHTTP(out, r)
	out.Settle() // before what it takes is given back
}

// writeFull tells a visitor that there is no room for its request or for the answer to it.
func writeFull(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusTooManyRequests, fmt.Sprintf("the visits of this sandbox's ports that are under way hold as much of the daemon's memory as they may (%d MiB with those of all sandboxes of its owner); try again", backend.RoomEach>>20))
}

// apiKey is the form of this daemon's own tokens.
var apiKey = regexp.MustCompile(`^e2b_[0-9a-f]{40}$`)

// stripSecrets takes out of a request what is for the daemon: nothing inside is to
// have it.
func stripSecrets(h http.Header, own string) {
	for _, name := range []string{headerSandbox, headerPort, headerTraffic} {
		h.Del(name)
	}
	if own != "" && slices.Contains(h.Values("X-Access-Token"), own) { // whichever of several it is
		h.Del("X-Access-Token")
	}
	for _, name := range []string{"X-API-Key", "Authorization"} {
		if slices.ContainsFunc(h.Values(name), hasKey) {
			h.Del(name)
		}
	}
}

// hasKey tells whether a header is one of this daemon's tokens, as the control plane
// reads it.
func hasKey(value string) bool {
	if scheme, key, ok := strings.Cut(value, " "); ok && strings.EqualFold(scheme, "Bearer") {
		value = key
	}
	return apiKey.MatchString(strings.TrimSpace(value))
}

// portError answers where no server inside did.
func (d *Data) portError(w http.ResponseWriter, r *http.Request, to target, err error) {
	box, gone := d.living(to.sandbox)
	switch {
	case r.Context().Err() != nil: // nobody is there to be told
	case gone != nil:
		writeGone(w, to.sandbox, gone)
	case errors.Is(err, httphead.ErrFull):
		writeFull(w)
	case errors.Is(err, fault.ErrForbidden):
		writeError(w, http.StatusForbidden, portRefusal(failureOf(err).Message, to.port))
	case errors.Is(err, fault.ErrConflict):
		message := failureOf(err).Message
		if held := heldSentence(box.Waits()); held != "" {
			message = held
		}
		writeError(w, http.StatusConflict, message)
	default:
		message := fmt.Sprintf("The sandbox is running but port %d is not open", to.port)
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
