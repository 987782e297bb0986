package tlshello

import "bytes"

const typeServerHello = 2

// Server watches a server's side until its first message is whole: that is its
// ServerHello, or the retry in the form of one.
type Server struct {
	records records
	message handshakeMessage
	done    bool
}

// Take reads p; all of it may be passed on. Bytes that come once it is done are not looked at.
// An alert may come before, as some servers warn that they do not know a name.
func (s *Server) Take(p []byte) (done bool, err error) {
	s.message.most = maxServer
	for n := 0; n < len(p) && !s.done; {
		kind, payload, used, _, err := s.records.nextPiece(p[n:])
		n += used
		if err == nil && s.records.total > 2*maxServer {
			err = wrongHello("the server says too much before its ServerHello")
		}
		if err == nil && len(payload) > 0 {
			err = s.takePiece(kind, payload)
		}
		if err != nil {
			return false, err
		}
	}
	return s.done, nil
}

func (s *Server) takePiece(kind byte, payload []byte) error {
	switch {
	case kind == recordAlert && len(s.message.bytes) == 0:
		return nil
	case kind != recordHandshake:
		return wrongHello("the server does not answer with a ServerHello")
	}
	s.message.bytes = append(s.message.bytes, payload...) // other messages may follow in the record
	if s.message.bytes[0] != typeServerHello {
		return wrongHello("the server does not answer with a ServerHello")
	}
	if len(s.message.bytes) < messageHead {
		return nil
	}
	size := messageHead + (int(s.message.bytes[1])<<16 | int(s.message.bytes[2])<<8 | int(s.message.bytes[3]))
	if size > s.message.most {
		return wrongHello("the server's first message is too long")
	}
	s.done = len(s.message.bytes) >= size
	return nil
}

// Retry tells that the client was asked for a second ClientHello.
func (s *Server) Retry() bool {
	const at = messageHead + 2 // behind the version
	return len(s.message.bytes) >= at+32 && bytes.Equal(s.message.bytes[at:at+32], retryRandom())
}

// retryRandom is what a ServerHello that is a retry has in the place of its random bytes:
// the SHA-256 of "HelloRetryRequest" (RFC 8446, 4.1.3).
func retryRandom() []byte {
	return []byte{
		0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
		0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
	}
}
