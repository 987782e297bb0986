package liar

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Reply is one scripted answer.
type Reply func(s *Server, w http.ResponseWriter, r *http.Request)

// Body is an honest answer.
func Body(contentType string, body []byte) Reply {
	return With(http.StatusOK, http.Header{"Content-Type": {contentType}}, body)
}

// With answers with a status, headers and a body.
func With(status int, header http.Header, body []byte) Reply {
	return func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = w.Write(body) // the client may have gone, on purpose
	}
}

// Status answers with a status and no body.
func Status(code int) Reply { return With(code, nil, nil) }

// Busy answers 429 or 503 with a Retry-After of some seconds.
func Busy(code, seconds int) Reply {
	return With(code, http.Header{"Retry-After": {strconv.Itoa(seconds)}}, nil)
}

// Redirect answers 302 to anywhere.
func Redirect(location string) Reply {
	return With(http.StatusFound, http.Header{"Location": {location}}, nil)
}

// Claim announces size bytes and sends body: too short it is a cut connection,
// too long it is a longer stream than announced.
func Claim(contentType string, size int, body []byte) Reply {
	return rawReply(func(w *connWriter) {
		w.printf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", contentType, size)
		w.writeBytes(body)
	})
}

// Chunked sends body in one chunk and cuts the connection before the end mark.
func Chunked(contentType string, body []byte) Reply {
	return rawReply(func(w *connWriter) {
		w.printf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", contentType, len(body))
		w.writeBytes(body)
		w.printf("\r\n")
	})
}

// Unframed answers as HTTP/1.0 does: the body's end is that of the connection,
// which is closed in order. A body that is cut looks like a whole one.
func Unframed(header http.Header, body []byte) Reply {
	return rawReply(func(w *connWriter) {
		w.printf("HTTP/1.0 200 OK\r\n")
		for name, values := range header {
			w.printf("%s: %s\r\n", name, strings.Join(values, ", "))
		}
		w.printf("\r\n")
		w.writeBytes(body)
	})
}

// Partial answers 206 with a part of what was asked for.
func Partial(contentType string, body []byte) Reply {
	return With(http.StatusPartialContent, http.Header{
		"Content-Type": {contentType}, "Content-Range": {fmt.Sprintf("bytes 0-%d/%d", len(body)/2-1, len(body))},
	}, body[:len(body)/2])
}

// Gzip packs the body honestly; times packs it again.
func Gzip(contentType string, body []byte, times int) Reply {
	for range times {
		body = Packed(body)
	}
	encoding := strings.TrimSuffix(strings.Repeat("gzip, ", times), ", ")
	return With(http.StatusOK, http.Header{"Content-Type": {contentType}, "Content-Encoding": {encoding}}, body)
}

// Bomb is some kilobytes of gzip that inflate to size bytes.
func Bomb(contentType string, size int) Reply {
	return Gzip(contentType, bytes.Repeat([]byte{' '}, size), 1)
}

// Packed is gzip.
func Packed(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b) // to memory
	_ = z.Close()
	return out.Bytes()
}

// Drip sends a head that announces size bytes and then one byte per pause.
func Drip(contentType string, size int, pause time.Duration) Reply {
	return func(s *Server, w http.ResponseWriter, r *http.Request) {
		rawReply(func(c *connWriter) {
			c.printf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", contentType, size)
			for range size {
				select {
				case <-s.done:
					return
				case <-r.Context().Done():
					return
				case <-time.After(pause):
				}
				c.printf(" ")
				if c.err != nil {
					return
				}
			}
		})(s, w, r)
	}
}

// HeadDrip sends the head a line per pause and never ends it.
func HeadDrip(pause time.Duration) Reply {
	return func(s *Server, w http.ResponseWriter, r *http.Request) {
		rawReply(func(c *connWriter) {
			c.printf("HTTP/1.1 200 OK\r\n")
			for c.err == nil {
				select {
				case <-s.done:
					return
				case <-time.After(pause):
				}
				c.printf("X-Drip: drip\r\n")
			}
		})(s, w, r)
	}
}

// Silence accepts the request and never answers.
func Silence() Reply {
	return func(s *Server, _ http.ResponseWriter, r *http.Request) {
		select {
		case <-s.done:
		case <-r.Context().Done():
		}
	}
}

// Cut closes the connection without an answer.
func Cut() Reply { return rawReply(func(*connWriter) {}) }

// Stream writes what next gives until it gives nothing.
func Stream(contentType string, next func(i int) []byte) Reply {
	return func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; ; i++ {
			b := next(i)
			if b == nil {
				return
			}
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}
}

// connWriter writes to a hijacked connection and keeps the first error.
type connWriter struct {
	conn interface{ Write(b []byte) (int, error) }
	err  error
}

func (c *connWriter) writeBytes(b []byte) {
	if c.err == nil {
		_, c.err = c.conn.Write(b)
	}
}

func (c *connWriter) printf(format string, args ...any) {
	c.writeBytes(fmt.Appendf(nil, format, args...))
}

// rawReply takes the connection over and closes it after f.
func rawReply(f func(*connWriter)) Reply {
	return func(_ *Server, w http.ResponseWriter, _ *http.Request) {
		h, ok := w.(http.Hijacker)
		if !ok {
			return
		}
		conn, _, err := h.Hijack()
		if err != nil {
			return
		}
		f(&connWriter{conn: conn})
		_ = conn.Close() // that is the point
	}
}
