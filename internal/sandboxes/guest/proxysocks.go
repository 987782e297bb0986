package guest

import (
	"bufio"
	"bytes"
	"io"
	"net/netip"
)

// What SOCKS 5 says (RFC 1928).
const (
	socksVersion   = 5
	socksNoAuth    = 0
	socksNoMethod  = 0xff
	socksConnect   = 1
	socksIPv4      = 1
	socksName      = 3
	socksIPv6      = 4
	socksGranted   = 0
	socksRefused   = 2 // by the rules
	socksNoCommand = 7
	socksNoAddress = 8
)

// readSOCKSTarget reads a greeting, answers it, and reads the request. It does not ask who asks:
// whoever is inside may.
func readSOCKSTarget(in *bufio.Reader, out io.Writer) (*target, error) {
	greeting := make([]byte, 2)
	if _, err := io.ReadFull(in, greeting); err != nil {
		return nil, err
	}
	methods := make([]byte, greeting[1])
	if _, err := io.ReadFull(in, methods); err != nil {
		return nil, err
	}
	if !bytes.Contains(methods, []byte{socksNoAuth}) {
		_, err := out.Write([]byte{socksVersion, socksNoMethod})
		return nil, err
	}
	if _, err := out.Write([]byte{socksVersion, socksNoAuth}); err != nil {
		return nil, err
	}
	request := make([]byte, 4)
	if _, err := io.ReadFull(in, request); err != nil {
		return nil, err
	}
	name, port, problem, err := readSOCKSAddress(in, request)
	if err != nil || problem != socksGranted {
		if err == nil {
			_, err = out.Write(socksAnswer(problem))
		}
		return nil, err
	}
	return &target{name: name, port: port, granted: socksAnswer(socksGranted), refused: func(string) []byte { return socksAnswer(socksRefused) }}, nil
}

// readSOCKSAddress reads what is behind a request's first four bytes.
func readSOCKSAddress(in io.Reader, request []byte) (name string, port int, problem byte, err error) {
	length := 0
	switch {
	case request[0] != socksVersion || request[1] != socksConnect:
		return "", 0, socksNoCommand, nil
	case request[3] == socksIPv4:
		length = 4
	case request[3] == socksIPv6:
		length = 16
	case request[3] == socksName:
		size := make([]byte, 1)
		if _, err := io.ReadFull(in, size); err != nil {
			return "", 0, 0, err
		}
		length = int(size[0])
	default:
		return "", 0, socksNoAddress, nil
	}
	rest := make([]byte, length+2)
	if _, err := io.ReadFull(in, rest); err != nil {
		return "", 0, 0, err
	}
	name, port = string(rest[:length]), int(rest[length])<<8|int(rest[length+1])
	if address, ok := netip.AddrFromSlice(rest[:length]); ok && request[3] != socksName {
		name = address.Unmap().String()
	}
	return name, port, socksGranted, nil
}

func socksAnswer(code byte) []byte { return []byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0} }
