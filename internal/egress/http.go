package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
)

// Bounds of plain HTTP.
const (
	maxRequestHead = 64 << 10
	maxAnswerHead  = 1 << 20
	keptOpen       = 2 * time.Minute // a connection without a request
)

// carryHTTP reads requests, each of which must mean this connection's host, and makes
// them anew: what the host gets is what was read here, however a request was spelt.
func (p *passage) carryHTTP(ctx context.Context, first []byte) {
	if err := p.guest.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	transport := &http.Transport{
		DialContext: func(dialing context.Context, _, _ string) (net.Conn, error) {
			dialing, cancel := context.WithCancel(dialing)
			defer cancel()
			defer errand.When(ctx, cancel)() // what is dialled outlives a request, and not the guest's connection
			return p.dialHTTP(dialing)
		},
		DisableCompression:     true,
		ResponseHeaderTimeout:  p.router.limits.Idle,
		IdleConnTimeout:        keptOpen,
		MaxResponseHeaderBytes: maxAnswerHead,
	}
	defer transport.CloseIdleConnections()
	one := &single{Conn: p.guest, from: io.MultiReader(bytes.NewReader(first), p.guest), gone: make(chan struct{})}
	one.next = make(chan net.Conn, 1)
	one.next <- one
	server := &http.Server{
		Handler:           p.handler(transport),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: p.router.limits.HelloTime,
		IdleTimeout:       keptOpen,
		MaxHeaderBytes:    maxRequestHead,

		DisableGeneralOptionsHandler: true, // it would answer in the host's place
		ErrorLog:                     log.New(io.Discard, "", 0),
	}
	_ = server.Serve(one) // it ends with the connection
}

func (p *passage) dialHTTP(ctx context.Context) (net.Conn, error) {
	far, err := p.reach(ctx, door.ProtocolHTTP)
	if err != nil {
		return nil, err // and no metered that is nil
	}
	return far, nil
}

// handler checks each request and passes it on.
func (p *passage) handler(transport http.RoundTripper) http.Handler {
	host := net.JoinHostPort(p.name, strconv.Itoa(p.port))
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", host, r.In.Host
			r.Out.URL.RawQuery = r.In.URL.RawQuery
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del("Alt-Svc") // there is no other way to the host
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if refused, ok := errors.AsType[*errRefused](err); ok {
				p.answer(w, http.StatusForbidden, refused.sentence)
				return
			}
			p.answer(w, http.StatusBadGateway, "the host did not answer the request")
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, why := p.meant(r); why != "" {
			p.answer(w, status, p.refuse(r.Context(), door.RuleHostHTTP, why))
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// answer ends the connection with our own words.
func (p *passage) answer(w http.ResponseWriter, status int, sentence string) {
	w.Header().Set("Connection", "close")
	http.Error(w, "cofferdam: "+sentence, status)
}

// meant tells what is wrong with a request, "" if it means this connection's host.
func (p *passage) meant(r *http.Request) (status int, why string) {
	upgrade := strings.ToLower(r.Header.Get("Upgrade"))
	switch {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace || r.Method == "PRI":
		return http.StatusMethodNotAllowed, "a request has a method that is not passed on"
	case !p.isAuthority(r.Host):
		return http.StatusMisdirectedRequest, "a request is to another authority than " + p.name + ", to which the connection is"
	case r.URL.Scheme != "" && r.URL.Scheme != "http" || r.URL.User != nil || !strings.HasPrefix(r.URL.Path, "/"):
		return http.StatusBadRequest, "a request's target is none of this host"
	case upgrade != "" && upgrade != "websocket" || len(r.Header.Values("Upgrade")) > 1:
		return http.StatusBadRequest, "a request wants to go on in a protocol that is not passed on"
	}
	return 0, ""
}

// isAuthority tells whether an authority is this connection's.
func (p *passage) isAuthority(authority string) bool {
	host, port, found := strings.Cut(authority, ":")
	if found && port != strconv.Itoa(p.port) {
		return false
	}
	return lower(host) == p.name
}

// lower is s with its ASCII letters in lower case, and no other ones.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// single is a listener for one connection, and that connection, of which some was read.
type single struct {
	net.Conn
	from io.Reader
	next chan net.Conn
	once sync.Once
	gone chan struct{} // closed when the connection is
}

// Read implements net.Conn.
func (s *single) Read(b []byte) (int, error) { return s.from.Read(b) }

// Close implements net.Conn and net.Listener.
func (s *single) Close() error {
	s.once.Do(func() { close(s.gone) })
	return s.Conn.Close()
}

// CloseWrite is the half-close by which the server lets its last answer arrive.
func (s *single) CloseWrite() error { return closeWrite(s.Conn) }

// Accept implements net.Listener.
func (s *single) Accept() (net.Conn, error) {
	select {
	case conn := <-s.next:
		return conn, nil
	case <-s.gone:
		return nil, net.ErrClosed
	}
}

// Addr implements net.Listener.
func (s *single) Addr() net.Addr { return s.LocalAddr() }
