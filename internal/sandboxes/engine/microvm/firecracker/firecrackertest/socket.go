package firecrackertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// wire is a connection through the machine's socket.
type wire struct {
	guest net.Conn
}

// listen makes the host's end of the machine's socket. One that is there is an error, as it is
// of the real one. Needs mu.
func (m *Monitor) listen() error {
	if m.socket == "" {
		return nil
	}
	listener, err := net.Listen("unix", m.socket) //nolint:noctx // it goes with the process
	if err != nil {
		return err
	}
	safego.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			safego.Go(func() { m.servePort(conn) })
		}
	})
	return nil
}

// servePort brings who asks for a port to the guest.
func (m *Monitor) servePort(host net.Conn) {
	guest, from, err := m.connectGuest(host)
	if err != nil {
		_ = host.Close()
		return
	}
	safego.Go(func() {
		_, _ = io.Copy(guest, from)
		_ = guest.Close()
	})
	_, _ = io.Copy(host, guest)
	// The host is not told what the guest has lost: its connection stays, and nothing
	// comes over it any more.
}

func (m *Monitor) connectGuest(host net.Conn) (net.Conn, io.Reader, error) {
	from := bufio.NewReaderSize(host, 32)
	line, err := from.ReadSlice('\n')
	if err != nil {
		return nil, nil, err
	}
	var port uint32
	if _, err := fmt.Sscanf(string(line), "CONNECT %d\n", &port); err != nil {
		return nil, nil, err
	}
	guest, err := m.Guest.Connect(port)
	if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost {
		return nil, nil, errors.Join(errors.New("the connection was lost"), guest.Close())
	}
	m.wires = append(m.wires, wire{guest: guest})
	_, err = fmt.Fprintf(host, "OK %d\n", 1<<30+len(m.wires))
	return guest, from, err
}

// resetConns takes all connections from the guest. Needs mu.
func (m *Monitor) resetConns() {
	for _, w := range m.wires {
		_ = w.guest.Close()
	}
	m.wires, m.lost = nil, false
}
