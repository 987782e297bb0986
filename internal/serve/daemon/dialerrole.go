package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/landlock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/seccomp"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/network/dialer"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// dialerDocument is what the daemon tells a fresh dialer, on its standard input. No
// credential is in it.
type dialerDocument struct {
	Confinement confinement    `json:"confinement"`
	Allowed     dialer.Allowed `json:"allowed"`
}

// dialerFD is the descriptor of the socket that a dialer inherits.
const dialerFD = 3

// startDialer starts the process that makes the gateway's connections. The other end of
// its socket is for the gateway; when that is closed it ends, and ended returns.
func (g *gatewayProcess) startDialer(ctx context.Context, b bootDocument) (boxed *os.File, ended func(), err error) {
	ours, boxed, err := dialer.Pair()
	if err != nil {
		return nil, nil, err
	}
	defer ours.Close()
	cmd, err := g.startRole(ctx, "dialer", dialerDocument{Confinement: b.Confinement, Allowed: allowed(b.Upstreams, b.Hosts)}, &syscall.SysProcAttr{}, ours)
	if err != nil {
		boxed.Close()
		return nil, nil, err
	}
	over := make(chan struct{})
	safego.Go(func() {
		defer close(over)
		if err := cmd.Wait(); err != nil && ctx.Err() == nil {
			g.d.opts.Log.Warn("the gateway's dialer ended", "err", err)
		}
	})
	return boxed, func() { <-over }, nil
}

// allowed are the addresses beside the internet's that the configuration leads to.
func allowed(ups []upstream.Config, hosts []outbound.Host) dialer.Allowed {
	var a dialer.Allowed
	for _, up := range ups {
		if at, err := netip.ParseAddrPort(up.Address); err == nil {
			a.Pins = append(a.Pins, dialer.Pin{At: at, Others: true})
		}
		for _, place := range []string{up.Index, up.LogURL} {
			a = addURLHost(a, place, true)
		}
		a = addURLHost(a, up.Proxy, false)
	}
	for _, h := range hosts {
		switch {
		case h.Address.IsValid():
			a.Pins = append(a.Pins, dialer.Pin{At: h.Address})
		case h.Private:
			a.Names = append(a.Names, dialer.Name{Name: h.Name, Private: true})
		}
	}
	return a
}

// addURLHost adds the host of a URL: an address that was typed, or a name.
func addURLHost(a dialer.Allowed, place string, others bool) dialer.Allowed {
	u, err := url.Parse(place)
	if err != nil || u.Hostname() == "" {
		return a
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if typed, err := netip.ParseAddr(host); err == nil {
		a.Pins = append(a.Pins, dialer.Pin{At: netip.AddrPortFrom(typed, 0), Others: others})
		return a
	}
	a.Names = append(a.Names, dialer.Name{Name: host, Others: others})
	return a
}

// RunDialer is the dialer's process: it reads its boot document, gives up what it does not
// need, and answers until the gateway's end of the socket closes or ctx ends.
func RunDialer(ctx context.Context, boot io.Reader) error {
	var b dialerDocument
	if err := json.NewDecoder(boot).Decode(&b); err != nil {
		return fmt.Errorf("the dialer is started by the daemon only: read the boot document: %w", err)
	}
	reach := func() landlock.Reach { return landlock.Reach{Read: resolverFolders("/etc"), Connects: true} }
	if err := b.Confinement.settleRole(reach, seccomp.EnterWithSockets, slog.Default()); err != nil {
		return err
	}
	return dialer.Serve(ctx, os.NewFile(dialerFD, "dialer"), b.Allowed, net.DefaultResolver)
}
