package tlshello

const typeClientHello = 1

// Client reads a client's side up to the end of its ClientHello. The zero Client is the
// beginning of a connection; see Again.
type Client struct {
	records records
	message handshakeMessage
	again   bool
	changed int // records of kind recordChangeCipher
	hello   Hello
	done    bool
}

// Again is a Client for what follows a retry: records of early data, which the server
// passes over, and of a change of cipher, which means nothing, may come before the
// ClientHello then.
func Again() *Client { return &Client{again: true} }

// Take reads p, as far as the end of the ClientHello, and returns how many bytes that
// were. The bytes behind it are no part of it. Once it is done, or failed, it takes no
// more.
func (c *Client) Take(p []byte) (n int, done bool, err error) {
	c.message.most = MaxSize
	for n < len(p) && !c.done {
		kind, payload, used, last, err := c.records.nextPiece(p[n:])
		n += used
		if err == nil && c.records.total > MaxSize {
			err = wrongHello("the ClientHello is longer than 64 KiB")
		}
		if err == nil && len(payload) > 0 {
			err = c.takePiece(kind, payload, last)
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, c.done, nil
}

func (c *Client) takePiece(kind byte, payload []byte, last bool) error {
	if kind != recordHandshake {
		return c.passOver(kind, payload, last)
	}
	whole, err := c.message.addPiece(payload)
	if len(c.message.bytes) > 0 && c.message.bytes[0] != typeClientHello {
		return wrongHello("it does not begin with a ClientHello")
	}
	if err != nil || !whole {
		return err
	}
	if !last {
		return wrongHello("something follows the ClientHello in its own record")
	}
	c.hello, err = parseHello(c.message.bytes[messageHead:])
	c.done = err == nil
	return err
}

// passOver takes a record that is none of the handshake.
func (c *Client) passOver(kind byte, payload []byte, last bool) error {
	switch {
	case !c.again:
		return wrongHello("it does not begin with a ClientHello")
	case len(c.message.bytes) > 0:
		return wrongHello("a record of another kind lies inside of the ClientHello")
	case kind == recordData:
		return nil
	case kind == recordChangeCipher:
		if c.changed++; c.changed == 1 && last && len(payload) == 1 && payload[0] == 1 {
			return nil
		}
	}
	return wrongHello("after the server asked for it, no second ClientHello came")
}

// Hello is what was read, once Take is done.
func (c *Client) Hello() Hello { return c.hello }
