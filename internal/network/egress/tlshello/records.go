package tlshello

// The kinds of records.
const (
	recordChangeCipher = 20
	recordAlert        = 21
	recordHandshake    = 22
	recordData         = 23
)

// Sizes in bytes.
const (
	// MaxSize bounds what a client sends until its ClientHello is whole, frames included:
	// with post-quantum keys one has 2,000 bytes, and with a long session ticket some more.
	MaxSize = 64 << 10
	// maxServer is the same of a server's first message.
	maxServer = 16 << 10
	maxRecord = 1<<14 + 256 // of its payload, encrypted
	maxPlain  = 1 << 14
	headSize  = 5
)

// records takes one side's bytes apart, as they come.
type records struct {
	head  [headSize]byte
	have  int // bytes of head
	left  int // bytes of the record's payload that are to come
	total int // bytes taken
}

// nextPiece takes a piece of one record from p: its kind, what of its payload came (nothing as
// long as the head is not whole), and how many bytes of p that was. last tells that the
// record ends there.
func (r *records) nextPiece(p []byte) (kind byte, payload []byte, n int, last bool, err error) {
	if r.left == 0 {
		n = copy(r.head[r.have:], p)
		r.have += n
		r.total += n
		if r.have < headSize {
			return 0, nil, n, false, nil
		}
		if err := r.readHead(); err != nil {
			return 0, nil, n, false, err
		}
	}
	payload = p[n:min(len(p), n+r.left)]
	r.left -= len(payload)
	r.total += len(payload)
	if last = r.left == 0; last {
		r.have = 0
	}
	return r.head[0], payload, n + len(payload), last, nil
}

// readHead reads a whole head.
func (r *records) readHead() error {
	kind, major, minor := r.head[0], r.head[1], r.head[2]
	r.left = int(r.head[3])<<8 | int(r.head[4])
	most := maxPlain
	if kind == recordData {
		most = maxRecord
	}
	switch {
	case kind < recordChangeCipher || kind > recordData || major != 3 || minor > 4:
		return wrongHello("it is not TLS")
	case r.left == 0:
		return wrongHello("a record is empty")
	case r.left > most:
		return wrongHello("a record is longer than TLS has them")
	}
	return nil
}

// handshakeMessage puts a message of the handshake together.
type handshakeMessage struct {
	bytes []byte
	most  int
}

const messageHead = 4

// addPiece takes a piece of a record; whole tells that the message is.
func (m *handshakeMessage) addPiece(piece []byte) (whole bool, err error) {
	m.bytes = append(m.bytes, piece...)
	if len(m.bytes) < messageHead {
		return false, nil
	}
	size := messageHead + (int(m.bytes[1])<<16 | int(m.bytes[2])<<8 | int(m.bytes[3]))
	switch {
	case size > m.most:
		return false, wrongHello("a message is too long")
	case len(m.bytes) > size:
		return false, wrongHello("something follows a message in its own record")
	}
	return len(m.bytes) == size, nil
}
