package guest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// errHead is a head that is too long, or none.
var errHead = errors.New("no head of a request")

// readHTTPTarget reads the head of a request. CONNECT wants a stream. Any other request is
// for the host in its target, and passed on as it is but for its connection: that ends with
// the answer, so that the next request, which may be for another host, asks again.
func readHTTPTarget(in *bufio.Reader, out io.Writer) (*target, error) {
	head, err := readHead(in)
	if err != nil {
		return nil, err
	}
	line, fields, _ := bytes.Cut(head, []byte("\r\n"))
	to, problem := httpTarget(strings.Split(string(line), " "))
	if problem == "" && to.granted == nil {
		var ok bool
		if to.first, ok = rewritten(line, fields); !ok {
			problem = "the request has a header that is read in two ways"
		}
	}
	if problem != "" {
		_, err := out.Write(httpAnswer("400 Bad Request", problem))
		return nil, err
	}
	to.refused = func(reason string) []byte { return httpAnswer("403 Forbidden", reason) }
	return to, nil
}

// readHead reads up to and with the empty line.
func readHead(in *bufio.Reader) ([]byte, error) {
	var head []byte
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		head = append(head, line...)
		switch {
		case len(head) > maxProxyHead || !bytes.HasSuffix(line, []byte("\r\n")):
			return nil, errHead
		case len(line) == 2:
			return head, nil
		}
	}
}

// httpTarget reads a request line's words.
func httpTarget(words []string) (to *target, problem string) {
	if len(words) != 3 || !strings.HasPrefix(words[2], "HTTP/1.") {
		return nil, "this is a proxy for HTTP/1 and SOCKS 5"
	}
	if words[0] == "CONNECT" {
		host, port, err := net.SplitHostPort(words[1])
		number, ok := portNumber(port)
		if err != nil || !ok {
			return nil, "CONNECT needs a host and a port"
		}
		return &target{name: host, port: number, granted: []byte(words[2] + " 200 Connected\r\n\r\n")}, ""
	}
	u, err := url.Parse(words[1])
	switch {
	case err != nil || u.Host == "":
		return nil, "this is a proxy: a request's target is a whole URL here"
	case u.Scheme != "http":
		return nil, "only URLs that begin with http:// are fetched; for others ask with CONNECT"
	}
	number, ok := 80, true
	if port := u.Port(); port != "" {
		number, ok = portNumber(port)
	}
	if !ok {
		return nil, "the URL's port is none"
	}
	return &target{name: u.Hostname(), port: number}, ""
}

func portNumber(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil && n > 0 && strconv.FormatUint(n, 10) == s
}

// rewritten is a head without what a client says to a proxy.
func rewritten(line, fields []byte) (head []byte, ok bool) {
	head = append(append(head, line...), "\r\n"...)
	for field := range bytes.SplitAfterSeq(fields, []byte("\r\n")) {
		name, _, _ := bytes.Cut(field, []byte(":"))
		switch strings.ToLower(string(name)) {
		case "connection", "proxy-connection", "keep-alive", "proxy-authorization", "upgrade":
			continue
		case "\r\n":
			return append(head, "Connection: close\r\n\r\n"...), true
		}
		if name[0] == ' ' || name[0] == '\t' { // it would go on what stands before it
			return nil, false
		}
		head = append(head, field...)
	}
	return nil, false
}

// httpAnswer is an answer of the proxy's own.
func httpAnswer(status, sentence string) []byte {
	body := "cofferdam: " + sentence + "\n"
	return fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, len(body), body)
}
