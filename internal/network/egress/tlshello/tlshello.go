package tlshello

// Hello is what a ClientHello says in the clear.
type Hello struct {
	// Name is the server's name in lower case: letters, digits, hyphens, underscores and
	// dots. "" if there is none.
	Name string
	// Encrypted tells that another ClientHello may be hidden in it, for another name. A
	// client that only pretends (GREASE) can't be told from one that does not: that is what
	// it pretends for.
	Encrypted bool
	// HTTP1 and HTTP2 tell whether it offers these by name (ALPN).
	HTTP1, HTTP2 bool
}

// The extensions that matter here.
const (
	extensionName         = 0
	extensionProtocols    = 16
	extensionEncrypted    = 0xfe0d
	extensionEncryptedOld = 0xffce // of drafts, under the name ESNI
)

// maxExtensions is more than there are.
const maxExtensions = 128

// helloReader takes a message apart. After the first piece that is not there, bad is set and
// all further pieces are empty.
type helloReader struct {
	rest []byte
	bad  bool
}

func (r *helloReader) takeBytes(n int) []byte {
	if r.bad || n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nil
	}
	piece := r.rest[:n]
	r.rest = r.rest[n:]
	return piece
}

// readNumber reads n bytes, big-endian.
func (r *helloReader) readNumber(n int) int {
	v := 0
	for _, b := range r.takeBytes(n) {
		v = v<<8 | int(b)
	}
	return v
}

// readSized reads what has its length in n bytes in front.
func (r *helloReader) readSized(n int) []byte { return r.takeBytes(r.readNumber(n)) }

// parseHello reads a ClientHello's body, all of it.
func parseHello(body []byte) (Hello, error) {
	r := &helloReader{rest: body}
	version := r.readNumber(2)
	r.takeBytes(32) // random
	session, ciphers, compressions := r.readSized(1), r.readSized(2), r.readSized(1)
	switch {
	case r.bad || len(session) > 32 || len(ciphers) == 0 || len(ciphers)%2 != 0 || len(compressions) == 0:
		return Hello{}, wrongHello("the ClientHello is malformed")
	case version>>8 != 3:
		return Hello{}, wrongHello("the ClientHello is of no version of TLS")
	case len(r.rest) == 0:
		return Hello{}, nil // without extensions, so without a name
	}
	extensions := r.readSized(2)
	if r.bad || len(r.rest) > 0 {
		return Hello{}, wrongHello("the ClientHello's extensions are malformed")
	}
	return parseExtensions(extensions)
}

func parseExtensions(all []byte) (h Hello, err error) {
	seen := map[int]bool{}
	for r := (&helloReader{rest: all}); len(r.rest) > 0; {
		kind, body := r.readNumber(2), r.readSized(2)
		switch {
		case r.bad || len(seen) >= maxExtensions:
			return Hello{}, wrongHello("the ClientHello's extensions are malformed")
		case seen[kind]:
			return Hello{}, wrongHello("the ClientHello has an extension twice")
		}
		seen[kind] = true
		switch kind {
		case extensionName:
			if h.Name, err = parseName(body); err != nil {
				return Hello{}, err
			}
		case extensionProtocols:
			h.HTTP1, h.HTTP2 = parseProtocols(body)
		case extensionEncrypted, extensionEncryptedOld:
			h.Encrypted = true
		}
	}
	return h, nil
}

// parseProtocols looks for two names in a list of them. One that is malformed has none: who
// answers the ClientHello refuses it.
func parseProtocols(body []byte) (http1, http2 bool) {
	outer := &helloReader{rest: body}
	for list := (&helloReader{rest: outer.readSized(2)}); len(list.rest) > 0; {
		switch string(list.readSized(1)) {
		case "http/1.1":
			http1 = true
		case "h2":
			http2 = true
		}
	}
	return http1, http2
}

// parseName reads a list of names, in which there is one, of the one kind that there is.
func parseName(body []byte) (string, error) {
	outer := &helloReader{rest: body}
	list := &helloReader{rest: outer.readSized(2)}
	kind, name := list.readNumber(1), list.readSized(2)
	switch {
	case outer.bad || list.bad || len(outer.rest) > 0 || kind != 0:
		return "", wrongHello("the ClientHello's server name is malformed")
	case len(list.rest) > 0:
		return "", wrongHello("the ClientHello has more than one server name")
	}
	return canonical(name)
}

// canonical is a name in lower case. A name that no host can have is refused, and with it all
// that one reader ends where another goes on.
func canonical(name []byte) (string, error) {
	if len(name) == 0 || len(name) > 253 || name[0] == '.' || name[len(name)-1] == '.' {
		return "", wrongHello("the ClientHello's server name is no host's name")
	}
	lower := make([]byte, len(name))
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return "", wrongHello("the ClientHello's server name is no host's name")
		}
		lower[i] = c
	}
	return string(lower), nil
}
