package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// lookupTime is how long a name of the domain is looked up.
const lookupTime = 5 * time.Second

// resolveSystem looks a name up as the programs of this machine do, which may know more than a DNS server
// says: their libraries ask what nsswitch.conf names. This program is static and would ask DNS and the hosts
// file alone, so getent is asked where there is one.
func resolveSystem(ctx context.Context, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	getent := executable.System("getent", nil)
	if getent == "" {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	}
	ask := exec.CommandContext(ctx, getent, "ahosts", name) // a name that the configuration has checked
	ask.Env = executable.SystemEnvironment()
	out, err := ask.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 2 {
		return nil, notAnswered(ctx, name)
	}
	if err != nil {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	}
	var found []netip.Addr
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 0 {
			if ip, err := netip.ParseAddr(fields[0]); err == nil {
				found = append(found, ip)
			}
		}
	}
	return found, nil
}

// notAnswered is why the system found no address of a name: nil if there is none. getent says the same of a name
// server that does not answer, so this program asks for itself, and only the reason counts of that answer.
func notAnswered(ctx context.Context, name string) error {
	if _, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name); err != nil && !notKnown(err) {
		return err
	}
	return nil
}

// resolver looks a name up; tests have their own.
type resolver func(ctx context.Context, name string) ([]netip.Addr, error)

// wildcardProblem says why clients on this machine would not find the names below a domain, and what to do;
// "": they find them. address is where the daemon listens.
func wildcardProblem(ctx context.Context, lookUp resolver, domain, address string) string {
	bare, _, err := net.SplitHostPort(domain)
	if err != nil {
		bare = domain
	}
	to := listensAt(address)
	found, err := lookUp(ctx, "8000-probe."+bare)
	switch {
	case err == nil && leadThere(found, to):
		return ""
	case err != nil && !notKnown(err):
		return fmt.Sprintf("whether names below %s lead to the daemon is not known, since the lookup of one failed on this machine (%v). %s", bare, err, wildcardAdvice(bare, to))
	case len(found) > 0:
		return fmt.Sprintf("names below %s lead to %s on this machine, and the daemon listens at %s. %s", bare, found[0], address, wildcardAdvice(bare, to))
	}
	return fmt.Sprintf("names below %s do not resolve on this machine. %s", bare, wildcardAdvice(bare, to))
}

// notKnown tells whether a lookup was answered: there is no such name.
func notKnown(err error) bool {
	answer, ok := errors.AsType[*net.DNSError](err)
	return ok && answer.IsNotFound
}

// listensAt is the address that names should lead to; the zero one: any of this machine's.
func listensAt(address string) netip.Addr {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return netip.Addr{}
	}
	if host == "localhost" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.IsUnspecified() {
		return netip.Addr{}
	}
	return ip.Unmap()
}

// leadThere tells whether a client that takes any of the addresses reaches the one where the daemon listens. Which
// one it tries first is its affair: with one that is right it comes there in the end.
func leadThere(found []netip.Addr, to netip.Addr) bool {
	for _, ip := range found {
		if !to.IsValid() || ip.Unmap() == to {
			return true
		}
	}
	return false
}

// wildcardAdvice says how names below a domain come to lead to an address.
func wildcardAdvice(domain string, to netip.Addr) string {
	at := "the daemon's address"
	if to.IsValid() {
		at = to.String()
	}
	advice := fmt.Sprintf("Give the domain a wildcard record, *.%s to %s: at your DNS server, or with dnsmasq on this machine: address=/%s/%s", domain, at, domain, at)
	if strings.HasSuffix(domain, ".localhost") {
		return "The system's resolver knows names below localhost where systemd-resolved runs, or with libnss-myhostname (nss-myhostname) and \"myhostname\" in the line hosts: of /etc/nsswitch.conf. Else: " + advice
	}
	return advice
}

// tellDomain says how clients reach a daemon that begins to listen, and what is in their way. The key is not
// told: what a service writes is read by others.
func tellDomain(ctx context.Context, w io.Writer, lookUp resolver, l config.Listen) {
	_, _ = fmt.Fprintf(w, "clients of the E2B SDKs: E2B_DOMAIN=%s; all that they need, with a key: eval \"$(cofferdam env)\"\n", l.ClientDomain())
	if problem := wildcardProblem(ctx, lookUp, l.Domain, l.Address); problem != "" {
		_, _ = fmt.Fprintln(w, "cofferdam: "+problem)
	}
}
