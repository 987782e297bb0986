package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Options of a client; zero fields take the default.
type Options struct {
	Version  string   // of this program, for the User-Agent
	Resolver Resolver // default: the system's
	// Dial connects to an IP address and a port; default: this process does.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Limits Limits
	// Beside are all upstreams: what one of them was shown is looked for in the answers of another at its
	// host.
	Beside []Config
	// Recorder puts on record what is asked because of a sandbox, before it leaves.
	Recorder Recorder
}

// Limits bound what a client takes and how long it waits.
type Limits struct {
	PageBytes  int64         // of an index page after inflating; default 128 MiB
	PageTime   time.Duration // for one attempt at a page; default 60 s
	Attempts   int           // per request; default 3
	Backoff    time.Duration // before the second attempt, doubling, with jitter; default 250 ms
	RetryAfter time.Duration // the longest Retry-After that is waited for; default 5 s
	PaceWindow time.Duration // in every window a body must bring PaceBytes; default 30 s
	PaceBytes  int64         // default 64 KiB
	// BreakAfter requests of a guest that did not connect in a row, or guests that
	// got no answer, have them leave a host alone; default 5.
	BreakAfter int
	BreakFor   time.Duration // how long; default 30 s
	HeaderWait time.Duration // for the head of an answer; default 30 s
	// Turns are the requests at a time; default 16, of which a guest has at most 12,
	// and always 4, up to 128.
	Turns fairqueue.Limits
}

func (l Limits) withDefaults() Limits {
	if l.Turns == (fairqueue.Limits{}) {
		l.Turns = fairqueue.Limits{All: 16, Each: 12, Sure: 4, Most: 128}
	}
	return Limits{
		PageBytes:  orStandard(l.PageBytes, 128<<20),
		PageTime:   orStandard(l.PageTime, time.Minute),
		Attempts:   orStandard(l.Attempts, 3),
		Backoff:    orStandard(l.Backoff, 250*time.Millisecond),
		RetryAfter: orStandard(l.RetryAfter, 5*time.Second),
		PaceWindow: orStandard(l.PaceWindow, 30*time.Second),
		PaceBytes:  orStandard(l.PaceBytes, 64<<10),
		BreakAfter: orStandard(l.BreakAfter, 5),
		BreakFor:   orStandard(l.BreakFor, 30*time.Second),
		HeaderWait: orStandard(l.HeaderWait, 30*time.Second),
		Turns:      l.Turns,
	}
}

func orStandard[T int | int64 | time.Duration](v, standard T) T {
	if v == 0 {
		return standard
	}
	return v
}

// UserAgent begins the User-Agent of every request that a gateway sends; a
// gateway that meets it in a request of its own is asking itself.
const UserAgent = "cofferdam/"

// ErrDeclined is the cause of a fault that is the upstream's own answer: it has a reason
// not to give what was asked for.
var ErrDeclined = errors.New("the upstream's answer")

// ErrFailed is the cause of a fault that is the upstream's own failure: it can't be
// reached, breaks off, is too slow or says itself that it can't answer now.
var ErrFailed = errors.New("the upstream's failure")

// Client asks one upstream. It is safe for concurrent use. Its errors are
// faults whose sentence has no text of the upstream's: ErrNotFound (the
// upstream has no such thing), ErrForbidden (it refuses us), ErrUnavailable (it
// can't be reached, is broken or too slow: trying later may work), ErrInvalid
// (it answered what it may not answer).
type Client struct {
	cfg      Config
	base     *url.URL
	hosts    *hosts
	http     *http.Transport // and no http.Client: redirects are read here
	agent    string
	limits   Limits
	breakers *breakers
	shares   *fairqueue.Shares
	recorder Recorder
	sought   soughtTexts // what no answer may have in it
}

// New makes a client. FileHosts of the configuration are taken as learnt;
// their addresses are checked when they are dialled.
func New(cfg Config, o Options) (*Client, error) {
	base, err := url.Parse(cfg.Index)
	if err != nil || (base.Scheme != "https" && base.Scheme != "http") || base.Hostname() == "" ||
		base.User != nil || base.RawQuery != "" || base.Fragment != "" || !strings.HasSuffix(base.EscapedPath(), "/") {
		return nil, fault.Invalid("an upstream's index is an https URL that ends in a slash, without credentials, query and fragment")
	}
	if o.Recorder == nil {
		return nil, fault.Invalid("an upstream's client is made without anybody who puts on record what is asked")
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	h := &hosts{resolver: o.Resolver, scheme: base.Scheme, index: hostPort(base), learnt: map[string]bool{}}
	if h.pinned, err = cfg.pinned(); err != nil {
		return nil, err
	}
	for _, host := range cfg.FileHosts {
		if err := h.learnHost(context.Background(), host, false); err != nil {
			return nil, err
		}
	}
	limits := o.Limits.withDefaults()
	t, err := transport(cfg, &dialer{hosts: h, connect: o.Dial}, max(limits.Turns.All, limits.Turns.Most))
	if err != nil {
		return nil, err
	}
	t.ResponseHeaderTimeout = limits.HeaderWait
	return &Client{
		cfg: cfg, base: base, hosts: h, limits: limits,
		agent:    UserAgent + o.Version,
		http:     t,
		breakers: &breakers{after: limits.BreakAfter, pause: limits.BreakFor, byHost: map[string]*breaker{}},
		shares:   fairqueue.New(limits.Turns),
		recorder: o.Recorder,
		sought:   soughtIn(cfg, o.Beside),
	}, nil
}

// Config is what the client was made of, with the hosts learnt since.
func (c *Client) Config() Config {
	cfg := c.cfg
	cfg.FileHosts = c.FileHosts()
	return cfg
}

// FileHosts are the learnt hosts, sorted: "host" or "host:port".
func (c *Client) FileHosts() []string {
	c.hosts.mu.Lock()
	defer c.hosts.mu.Unlock()
	var out []string
	standard := map[string]string{"https": ":443", "http": ":80"}[c.hosts.scheme]
	for key := range c.hosts.learnt {
		out = append(out, strings.TrimSuffix(key, standard))
	}
	slices.Sort(out)
	return out
}

// Learn adds a file host after checking that its addresses are public or of
// the index's own class.
func (c *Client) Learn(ctx context.Context, host string) error {
	return c.hosts.learnHost(ctx, host, true)
}

// Permits reports whether a URL is one that this client would ask for.
func (c *Client) Permits(location string) bool {
	u, err := url.Parse(location)
	return err == nil && c.hosts.permits(u) == nil
}

// Close drops the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }
