package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// dialer dials permitted hosts only, at exactly the addresses that were checked.
type dialer struct {
	hosts *hosts
	proxy string // host:port of the operator's proxy, the one thing dialled if set
	// connect connects to an address and a port; nil: this process does.
	connect func(ctx context.Context, network, address string) (net.Conn, error)
}

func (d *dialer) dialHost(ctx context.Context, network, key string) (net.Conn, error) {
	if d.proxy != "" {
		if key != d.proxy {
			return nil, fault.Invalid("the upstream is reached through a proxy, and this is another address")
		}
		ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		return d.dialProxy(ctx, network)
	}
	if key != d.hosts.index && !d.hosts.isLearnt(key) {
		return nil, fault.Invalid("a host that is neither the upstream nor one of its file hosts")
	}
	addrs, err := d.hosts.addresses(ctx, key)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(key)
	if err != nil {
		return nil, fault.Invalid("an address without a port")
	}
	if key == d.hosts.index && d.hosts.pinned.IsValid() {
		port = strconv.Itoa(int(d.hosts.pinned.Port()))
	}
	return d.dialAny(ctx, network, key, addrs, port)
}

// dialProxy connects to the operator's proxy, wherever that is.
func (d *dialer) dialProxy(ctx context.Context, network string) (net.Conn, error) {
	if d.connect == nil {
		return (&net.Dialer{}).DialContext(ctx, network, d.proxy)
	}
	host, port, err := net.SplitHostPort(d.proxy)
	if err != nil {
		return nil, fault.Invalid("a proxy without a port")
	}
	addrs, err := d.hosts.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	return eachOf(addrs, func(a netip.Addr) (net.Conn, error) {
		return d.connect(ctx, network, net.JoinHostPort(a.String(), port))
	})
}

// eachOf tries addresses in order.
func eachOf(addrs []netip.Addr, dial func(netip.Addr) (net.Conn, error)) (net.Conn, error) {
	var failed []error
	for _, a := range addrs {
		conn, err := dial(a)
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

// oneTimeout bounds the attempt at one address.
const oneTimeout = 10 * time.Second

// dialAny tries the checked addresses in order. The check is repeated on the
// address that the kernel is about to connect to; who connects for us is told exactly it.
func (d *dialer) dialAny(ctx context.Context, network, key string, addrs []netip.Addr, port string) (net.Conn, error) {
	if d.connect != nil {
		return eachOf(addrs, func(a netip.Addr) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, oneTimeout)
			defer cancel()
			return d.connect(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
		})
	}
	nd := &net.Dialer{
		Timeout: oneTimeout,
		ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil || !d.hosts.mayHaveAddress(ctx, key, ap.Addr()) {
				return fault.Invalid("an address that the upstream may not have")
			}
			return nil
		},
	}
	return eachOf(addrs, func(a netip.Addr) (net.Conn, error) {
		return nd.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
	})
}

// transport has no environment proxies and no cookies; redirects are followed
// by the client, hop by hop. As many connections may be open to a host as there
// are turns, or who waits for one would wait behind others.
func transport(cfg Config, d *dialer, conns int) (*http.Transport, error) {
	t := &http.Transport{
		DialContext:            safego.ShieldDial(d.dialHost),
		TLSHandshakeTimeout:    15 * time.Second,
		ResponseHeaderTimeout:  30 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxConnsPerHost:        conns,
		MaxIdleConnsPerHost:    8,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // asked for and unpacked here, with limits
		ForceAttemptHTTP2:      true,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if len(cfg.CAPEM) > 0 {
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(cfg.CAPEM) {
			return nil, fault.Invalid("the upstream's CA bundle has no certificate")
		}
		t.TLSClientConfig.RootCAs = roots
	}
	u, err := cfg.proxy()
	if err != nil {
		return nil, err
	}
	if u != nil {
		d.proxy = hostPort(u)
		t.Proxy = http.ProxyURL(u)
	}
	return t, nil
}
