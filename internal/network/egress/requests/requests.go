// Package requests carries connections request by request: plain HTTP, and HTTP over TLS
// that it ends. Each request is read, must mean the connection's host, is judged where
// the policy asks for that, and is made anew, so that the host gets what was judged.
//
// A connection is judged if the policy has rules for the requests on it. To end TLS is to answer
// the client with a certificate of the policy's own authority, and to make another TLS connection
// to the host.
package requests

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httpqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Bounds of what is read of requests and answers.
const (
	maxRequestHead = 64 << 10
	maxAnswerHead  = httphead.Most
	maxPath        = 8 << 10
	maxAtOnce      = 60              // requests of one connection, over HTTP/2
	keptOpen       = 2 * time.Minute // a connection without a request
	continueTime   = time.Second     // that a host has to ask for a body which the client would hold back
)

// Bounds of what is kept of bodies over HTTP/2 until somebody reads them, in bytes.
const (
	// maxBodyKept is of a request, and the least that clients begin with. A connection takes as
	// much as all of its requests together, so that those which wait never keep the others from
	// being read; net/http takes less than 4 MiB there.
	maxBodyKept = 64 << 10
	// maxAnswerKept is of an answer, and maxAnswersKept of all answers of a connection to the
	// host together.
	maxAnswerKept  = 256 << 10
	maxAnswersKept = 1 << 20
)

// Config is a connection and all that it needs.
type Config struct {
	Connection
	// Dial connects to the host, plainly. It is called again if the host closes a
	// connection between two requests.
	Dial func(ctx context.Context) (net.Conn, error)
	// Admit has the connection to the host judged, once, and a person asked where it is held, whether the request's client waits for
	// that or has gone: of one that has gone nothing is dialled. The error is as Dial's. nil: Dial does so.
	Admit func() error
	// Ended is with what TLS is ended; nil: the client speaks plain HTTP.
	Ended *Ended
	// Judge judges a request by its method and its path, nil: none is judged. The error is
	// a *Refusal, or that it can't be judged.
	Judge func(ctx context.Context, r policy.Request) (Judgement, error)
	// AwaitPush waits for a person's answer to a push, where the terms say so. The error is
	// a *Refusal, or that nobody can be asked.
	AwaitPush func(ctx context.Context, p Push) error
	// Exchange may be nil.
	Exchange Exchange
	// Refuse puts a refusal on record and gives the sentence for the client. request is
	// its method and path.
	Refuse func(ctx context.Context, r *Refusal, request string) string
	// Full is called when so many judged requests have ended that Done should be, before
	// another one is read.
	Full      func(ctx context.Context)
	HeadTime  time.Duration // that a request's header may take, and the handshake
	AwaitTime time.Duration // that the host's answer may take to begin, and the client to take any more of it
}

// Ended is with what the TLS of a connection is ended.
type Ended struct {
	Certificate tls.Certificate // for the client
	HTTP1       bool            // the client offers it by name
	HTTP2       bool
	// Roots are for the certificate of the host, which was dialled; nil: this machine's.
	Roots func() *x509.CertPool
}

// Judgement is of a request that may be sent.
type Judgement struct {
	Rule  string
	Terms policy.RequestTerms
}

// Carrier carries one connection.
type Carrier struct {
	config Config
	passed atomic.Int64
	first  *upstream // that Serve connected to before the client's handshake; nil: none
	named  string    // by the client when its TLS was ended; "" without TLS
	guest  net.Conn
	// forget closes connections to the host on which nothing goes on.
	forget func()

	patterns patterns
	done     done
	handlers handlers
	queue    *httpqueue.Queue // over HTTP/2
}

// New makes one.
func New(c Config) *Carrier { return &Carrier{config: c, queue: httpqueue.New(c.Memory, maxAtOnce)} }

// Passed is how many requests were passed on.
func (c *Carrier) Passed() int64 { return c.passed.Load() }

// Serve carries a connection until it ends; said is what was read of it already. Done has what
// became of its requests when it returns: nothing of them goes on behind it.
func (c *Carrier) Serve(ctx context.Context, guest net.Conn, said io.Reader) {
	ctx, cancel := context.WithCancel(ctx)
	unread := c.unread(ctx)
	defer unread.settleHTTP2()     // once it is known of which requests the handler was told
	defer c.handlers.endHandlers() // the server does not wait for those of HTTP/2, nor for those that have taken the connection
	defer cancel()
	c.guest = guest
	one := newSingle(guest, said)
	one.full = func() { c.refuseHead(ctx) }
	defer one.head.Arrived() // none comes any more
	defer c.queue.End()
	transport := c.transport()
	defer transport.CloseIdleConnections()
	c.forget = transport.CloseIdleConnections
	server := &http.Server{
		Handler:           c.handler(transport, unread, one),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: c.config.HeadTime,
		IdleTimeout:       keptOpen,
		MaxHeaderBytes:    maxRequestHead,

		DisableGeneralOptionsHandler: true, // nobody answers in the host's place
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxAtOnce, MaxReceiveBufferPerStream: maxBodyKept, MaxReceiveBufferPerConnection: maxAtOnce * maxBodyKept,
		},
		ConnState: func(conn net.Conn, state http.ConnState) {
			c.expectHead(one, conn, state)
			unread.watchState(conn, state)
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	if c.config.Ended == nil {
		one.offerConn(unread.overhear(one))
	} else {
		conn, err := c.terminateTLS(ctx, one)
		defer c.first.closeConn()
		if err != nil {
			_ = conn.Close() // the client has gone, or knows why
			return
		}
		server.Protocols = c.inside(ctx, conn, one, unread)
	}
	_ = server.Serve(one) // it ends with the connection
	unread.awaitTold()
}

// transport is by what requests are sent to the host.
func (c *Carrier) transport() *http.Transport {
	return &http.Transport{
		DialContext:            safego.ShieldDial(func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dialPlain(ctx) }),
		DialTLSContext:         safego.ShieldDial(func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dialTLS(ctx) }),
		DisableCompression:     true,
		ResponseHeaderTimeout:  c.config.AwaitTime,
		ExpectContinueTimeout:  continueTime,
		IdleConnTimeout:        keptOpen,
		MaxResponseHeaderBytes: maxAnswerHead,
		ForceAttemptHTTP2:      c.config.Ended != nil,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: maxAnswerKept, MaxReceiveBufferPerConnection: maxAnswersKept},
	}
}

// inside offers what is inside of a client's TLS, and tells which protocol that is.
func (c *Carrier) inside(ctx context.Context, conn *tls.Conn, one *single, unread *unread) *http.Protocols {
	state, spoken := conn.ConnectionState(), &http.Protocols{}
	c.named = lowerASCII(state.ServerName)
	if state.NegotiatedProtocol == "h2" {
		spoken.SetUnencryptedHTTP2(true) // or nobody could look at it
		framed := &httpqueue.Conn{
			Conn: conn, Queue: c.queue, Full: func() { c.refuseHead(ctx) }, Broken: unread.broken, Begun: func() { unread.begun.Add(1) },
		}
		unread.brokeOff = framed.BrokeOff
		one.offerConn(framed)
	} else {
		spoken.SetHTTP1(true)
		one.offerConn(unread.overhear(conn))
	}
	return spoken
}

// handler checks each request and passes it on.
func (c *Carrier) handler(transport http.RoundTripper, unread *unread, from *single) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport:     &sender{carrier: c, to: &httphead.Transport{To: transport}},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite:       c.rewrite,
		ErrorHandler:  c.answerFailure,
	}
	return httphead.Behind(c.config.AwaitTime, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.handlers.beginHandler() {
			panic(http.ErrAbortHandler) // the connection has ended, and nobody was told of the request
		}
		unread.handle(r)
		c.queue.Handle()
		defer c.queue.Done()
		defer c.handlers.handlerDone()
		passing, r := httphead.NewPassing(r)
		r, kept := withPlace(r, c.config.Memory)
		defer httphead.WhenOver(r.Context(), kept.endPlace)() // over HTTP/2 the server keeps what came of a body that nobody reads
		defer kept.freePlace()
		fits := kept.charge(costOf(r))
		from.head.Arrived()
		if !fits {
			c.answerRefusal(w, r, kept.refuseFull())
			return
		}
		removeNamedFields(r.Header)
		judged, refusal := c.judgeRequest(r)
		if refusal != nil {
			c.answerRefusal(w, r, refusal)
			return
		}
		r, ended := c.followRequest(r, judged.Rule)
		defer c.cutShort(r)
		defer ended()
		out := &httphead.Answer{ResponseWriter: once{w}, Within: c.config.AwaitTime}
		passing.Answer(out, func(w http.ResponseWriter) { proxy.ServeHTTP(w, r) }) // before what it takes is given back
	}))
}

// removeNamedFields takes out the fields that Connection names, as the proxy would once the request is judged: a
// body is judged by its Content-Type, and the host must get it with that one. What Connection says of the connection
// itself stays for the proxy.
func removeNamedFields(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			switch name = http.CanonicalHeaderKey(textproto.TrimString(name)); name {
			case "", "Connection", "Upgrade", "Te", "Trailer":
			default:
				delete(h, name)
			}
		}
	}
}

// judgeRequest judges a request; what may be sent has been read as far as that needs.
func (c *Carrier) judgeRequest(r *http.Request) (judged Judgement, refusal *Refusal) {
	if refusal := c.checkMeant(r); refusal != nil || c.config.Judge == nil {
		return judged, refusal
	}
	if refusal := twoFaced(r); refusal != nil {
		return judged, refusal
	}
	judged, err := c.config.Judge(r.Context(), policy.Request{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery})
	if err != nil {
		return judged, refusalOf(err)
	}
	return judged, c.holdToTerms(r, judged.Terms)
}

// rewrite says where a request goes.
func (c *Carrier) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme = "http"
	if c.config.Ended != nil {
		r.Out.URL.Scheme = "https"
	}
	r.Out.URL.Host, r.Out.Host = c.authority(), r.In.Host
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	r.Out.Trailer = r.In.Trailer // the server fills it in when the body has ended
}

// cutShort has what was lost on its way never look like an end: HTTP/1.0 knows no other
// mark of one than the connection's, so that is broken off.
func (c *Carrier) cutShort(r *http.Request) {
	err := recover()
	if err == nil {
		return
	}
	if r.ProtoMajor == 1 {
		_ = c.guest.Close() // without a word of TLS
	}
	panic(err) // net/http ends the answer at this
}
