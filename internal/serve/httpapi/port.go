package httpapi

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// PortProtocol is the Upgrade token of a connection to a port.
const PortProtocol = "cofferdam-port"

// servePort upgrades the connection to one with a server inside. A token reaches what the
// policy publishes, the host's own users also what the policy leaves open.
func (s commandRoutes) servePort(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get("Upgrade") != PortProtocol {
		return fault.Invalid("a port needs the header Upgrade: %s", PortProtocol)
	}
	number, err := strconv.Atoi(r.PathValue("port"))
	if err != nil || number < 1 || number > 65535 {
		return fault.Invalid("%.20q is not a port", r.PathValue("port"))
	}
	if _, err := s.ownAwake(r); err != nil {
		return err
	}
	who, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	dial := s.cfg.Sandboxes.Dial
	if who.token == nil {
		dial = s.cfg.Sandboxes.DialHere
	}
	return s.joinPort(w, r, number, dial)
}

// joinPort connects the client with the server inside until both have ended.
func (s commandRoutes) joinPort(w http.ResponseWriter, r *http.Request, port int, dial func(context.Context, string, int) (net.Conn, error)) error {
	inside, err := dial(r.Context(), r.PathValue("id"), port)
	if err != nil {
		return err
	}
	defer inside.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+PortProtocol+"\r\n\r\n"); err != nil {
		return errAnswered
	}
	defer safego.When(r.Context(), func() { // the caller's token is not valid any more
		client.Close()
		inside.Close()
	})()
	passBoth(client, buffered.Reader, inside)
	return nil
}
