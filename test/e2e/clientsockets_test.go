package e2e

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
)

// serveSocket serves a WebSocket that says back what it is told. A frame that does not come
// masked, as those of clients must, ends it.
func serveSocket(w http.ResponseWriter, r *http.Request) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	conn, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	fmt.Fprintf(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]))
	for both.Flush() == nil {
		kind, text, err := socketFrame(both.Reader)
		if err != nil {
			return
		}
		if kind&0xf == 9 { // a ping
			kind = 0x8a
		}
		head := []byte{kind, byte(len(text))}
		switch {
		case len(text) > 0xffff:
			head = binary.BigEndian.AppendUint64([]byte{kind, 127}, uint64(len(text)))
		case len(text) > 125:
			head = binary.BigEndian.AppendUint16([]byte{kind, 126}, uint16(len(text)))
		}
		_, _ = both.Write(append(head, text...))
		if kind&0xf == 8 { // the end
			_ = both.Flush()
			return
		}
	}
}

// socketFrame reads a masked frame.
func socketFrame(from *bufio.Reader) (kind byte, text []byte, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(from, head); err != nil {
		return 0, nil, err
	}
	if head[1]&0x80 == 0 {
		return 0, nil, fmt.Errorf("a frame is not masked")
	}
	size := uint64(head[1] & 0x7f)
	if more := map[uint64]int{126: 2, 127: 8}[size]; more > 0 {
		long := make([]byte, 8)
		if _, err := io.ReadFull(from, long[8-more:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(long)
	}
	all := make([]byte, 4+size)
	if _, err := io.ReadFull(from, all); err != nil {
		return 0, nil, err
	}
	mask, text := all[:4], all[4:]
	for i := range text {
		text[i] ^= mask[i%4]
	}
	return head[0], text, nil
}

// serveGRPC answers gRPC's four kinds of calls, whose messages are bytes: one for one,
// many for one, the number of many, and one for each of many as it comes.
func serveGRPC(w http.ResponseWriter, r *http.Request, method string) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status, Grpc-Message, X-Sum")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	say := func(text string) {
		_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...))
		w.(http.Flusher).Flush()
	}
	n := 0
	for head := make([]byte, 5); ; n++ {
		if _, err := io.ReadFull(r.Body, head); err != nil {
			break
		}
		message := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(r.Body, message); err != nil {
			break
		}
		switch method {
		case "Unary", "Both":
			say("you said " + string(message))
		case "Many":
			for i := range 3 {
				say(fmt.Sprint(string(message), " ", i))
			}
		}
	}
	if method == "Sum" {
		say(fmt.Sprint(n))
	}
	status := "0"
	if method == "Fails" {
		status = "5"
		w.Header().Set("Grpc-Message", "there is none")
	}
	w.Header().Set("Grpc-Status", status)
	w.Header().Set("X-Sum", fmt.Sprint(n))
}
