package e2b

import (
	"net"
	"net/http"
	"strconv"
	"strings"
)

// The ports of a sandbox that are not its own.
const (
	dataPort        = 49983
	interpreterPort = 49999
)

// The headers that name a sandbox and one of its ports.
const (
	headerSandbox = "E2b-Sandbox-Id"
	headerPort    = "E2b-Sandbox-Port"
	headerTraffic = "E2b-Traffic-Access-Token"
	headerAccess  = "X-Access-Token"
)

const maxID = 64 // bytes of a sandbox's id

// target is where a request wants to go.
type target struct {
	sandbox string
	port    int
}

// Owns reports whether a request is the data plane's: it names a sandbox by header
// or host, or it is a signed request for a file.
func (d *Data) Owns(r *http.Request) bool {
	if r.Header.Get(headerSandbox) != "" || r.Header.Get(headerPort) != "" || isSigned(r) {
		return true
	}
	_, named := d.hostLabel(r)
	return named
}

// target reads which sandbox and port a request is for. Two that disagree are
// refused.
func (d *Data) target(r *http.Request) (target, error) {
	label, byHost := d.hostLabel(r)
	id, port := r.Header.Get(headerSandbox), r.Header.Get(headerPort)
	switch {
	case id == "" && byHost:
		return splitLabel(label)
	case id == "" && isSigned(r):
		return d.signer(r)
	case id == "":
		return target{}, refuseWith(codeInvalid, "the request names no sandbox: send the header %s", headerSandbox)
	}
	to := target{sandbox: SandboxOf(id), port: dataPort}
	if port != "" {
		to.port = portNumber(port)
	}
	if to.sandbox == "" || to.port == 0 {
		return target{}, refuseWith(codeInvalid, "%s %.80q and %s %.20q name no port of a sandbox", headerSandbox, id, headerPort, port)
	}
	if byHost {
		if other, err := splitLabel(label); err != nil || other != to {
			return target{}, refuseWith(codeInvalid, "the host name %.100q and the headers name different sandboxes", r.Host)
		}
	}
	return to, nil
}

// hostLabel is PORT-ID, or PORT-ID-CLIENT, of a host of that name in the Domain.
func (d *Data) hostLabel(r *http.Request) (string, bool) {
	if d.cfg.Domain == "" {
		return "", false
	}
	host := strings.ToLower(r.Host)
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	domain, _, _ := strings.Cut(strings.ToLower(d.cfg.Domain), ":") // it may come with a port
	label, found := strings.CutSuffix(strings.TrimSuffix(host, "."), "."+domain)
	return label, found && strings.Contains(label, "-") && !strings.Contains(label, ".")
}

func splitLabel(label string) (target, error) {
	port, id, _ := strings.Cut(label, "-")
	to := target{sandbox: SandboxOf(id), port: portNumber(port)}
	if to.port == 0 || to.sandbox == "" {
		return target{}, refuseWith(codeInvalid, "the host name %.80q is not PORT-SANDBOX", label)
	}
	return to, nil
}

// portNumber reads a port in its one spelling; 0: it is none.
func portNumber(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != text {
		return 0
	}
	return n
}

// SandboxOf returns the sandbox of an id in either of its forms, ID and ID-CLIENT, which
// older clients write; what stands for CLIENT says nothing here. "": it is none.
func SandboxOf(id string) string {
	id, client, long := strings.Cut(id, "-")
	if !plainID(id) || long && !plainID(client) {
		return ""
	}
	return id
}

// plainID tells whether a text can be a sandbox's id at all.
func plainID(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) < 0
}
