package requests

import (
	"crypto/tls"
	"net"

	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// overheard is a connection over which HTTP/1 is spoken, as net/http has it: what comes and what goes is
// noted.
type overheard struct {
	net.Conn
	by *httphead.Unhandled
}

// Read implements net.Conn.
func (o *overheard) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	o.by.Read(b[:n], err)
	return n, err
}

// Write implements net.Conn.
func (o *overheard) Write(b []byte) (int, error) {
	o.by.Wrote(len(b)) // before: whoever has read an answer finds its record
	return o.Conn.Write(b)
}

// CloseWrite closes the half that is written: so the server lets its last answer arrive.
func (o *overheard) CloseWrite() error {
	if half, ok := o.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return o.Close()
}

// overheardTLS is the same inside of TLS, of which net/http asks for the state.
type overheardTLS struct {
	overheard
	session *tls.Conn
}

// ConnectionState is that of the TLS.
func (o *overheardTLS) ConnectionState() tls.ConnectionState { return o.session.ConnectionState() }
