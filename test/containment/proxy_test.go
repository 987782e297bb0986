package containment

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// openProxy serves as what a gateway must not be: it fetches whatever it is asked for,
// in every form that there is. Controls use it.
func openProxy(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			in := bufio.NewReader(conn)
			if err := relay(conn, in); err != nil {
				fmt.Fprintf(conn, "HTTP/1.1 502 No\r\n\r\n%v\n", err)
			}
		}()
	}
}

func relay(conn net.Conn, in *bufio.Reader) error {
	first, err := in.Peek(1)
	if err != nil {
		return err
	}
	if first[0] == 5 {
		return socks(conn, in)
	}
	req, err := http.ReadRequest(in)
	if err != nil {
		return err
	}
	wanted := req.Host
	if f := req.Header.Get("X-Forwarded-Host"); f != "" {
		wanted = f
	}
	if _, u, ok := strings.Cut(req.URL.RawQuery, "url=http://"); ok {
		wanted, _, _ = strings.Cut(u, "/")
	}
	if req.Method == http.MethodConnect {
		if req, err = http.ReadRequest(in); err != nil {
			return err
		}
	}
	return pass(conn, wanted, "GET "+req.URL.RequestURI()+" HTTP/1.0\r\n\r\n")
}

// socks reads one request for a name, sent without waiting for answers.
func socks(conn net.Conn, in *bufio.Reader) error {
	head := make([]byte, 8)
	if _, err := io.ReadFull(in, head); err != nil {
		return err
	}
	host := make([]byte, int(head[7]))
	if _, err := io.ReadFull(in, host); err != nil {
		return err
	}
	if _, err := in.Discard(2); err != nil {
		return err
	}
	rest, err := in.ReadBytes('\n')
	return errors.Join(err, pass(conn, string(bytes.TrimSuffix(host, []byte{0})), string(rest)+"\r\n"))
}

func pass(conn net.Conn, wanted, request string) error {
	host, port, err := net.SplitHostPort(wanted)
	if err != nil {
		host, port = strings.Trim(wanted, "[]"), "80"
	}
	far, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), 2*time.Second)
	if err != nil {
		return err
	}
	defer far.Close()
	if _, err := io.WriteString(far, request); err != nil {
		return err
	}
	_, err = io.Copy(conn, far)
	return err
}
