package guest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// The one line that a client of the socket may say.
const (
	questionWhy     = "why"
	questionWhyJSON = "why --json"
)

const (
	whyDeadline = 5 * time.Second
	whyClients  = 4  // at once
	whyBurst    = 10 // questions, then one in each whyInterval
	whyInterval = 200 * time.Millisecond
	whyLine     = 64 // bytes

	tooMany = "Too many questions: ask again in a second.\n"
)

// whyServer answers `cofferdam why`. Any process of the sandbox may ask.
type whyServer struct {
	session  line
	listener net.Listener
	clients  chan struct{} // a slot for each client being served

	mu     sync.Mutex // guards the rest
	tokens float64
	filled time.Time
}

func newWhyServer(session line) *whyServer {
	return &whyServer{session: session, clients: make(chan struct{}, whyClients), tokens: whyBurst, filled: time.Now()}
}

// listen makes the socket, replacing one of a former life.
func (s *whyServer) listen(ctx context.Context, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // commands must reach the socket
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return err
	}
	s.listener = listener
	return os.Chmod(path, 0o666) //nolint:gosec // every user of the sandbox may ask
}

// serve answers clients until close, and waits for those being served.
func (s *whyServer) serve(ctx context.Context) {
	var served sync.WaitGroup
	defer served.Wait()
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors: those in use will be freed
			time.Sleep(10 * time.Millisecond)
			continue
		}
		select {
		case s.clients <- struct{}{}:
			served.Go(func() {
				defer func() { <-s.clients }()
				s.answer(ctx, conn)
			})
		default:
			_ = conn.Close()
		}
	}
}

func (s *whyServer) close() { _ = s.listener.Close() }

// answer reads one question and writes the host's text.
func (s *whyServer) answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	hurried, cancel := s.session.clock.within(ctx, whyDeadline)
	defer cancel()
	lift := limit(hurried, conn)
	in := bufio.NewReaderSize(io.LimitReader(conn, whyLine+maxRequestAsk), whyLine)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return
	}
	question := string(line[:len(line)-1])
	length, isRequest := strings.CutPrefix(question, questionRequest+" ")
	if !isRequest {
		_, _ = io.WriteString(conn, s.text(ctx, question))
		return
	}
	if !s.allow(time.Now()) {
		_, _ = io.WriteString(conn, tooMany)
		return
	}
	if !lift() {
		return
	}
	patient, cancel := s.session.clock.within(ctx, requestDeadline)
	defer cancel()
	defer limit(patient, conn)()
	_, _ = io.WriteString(conn, s.requestText(ctx, length, in))
}

// text is the answer to a question, or a sentence on why there is none.
func (s *whyServer) text(ctx context.Context, question string) string {
	if question != questionWhy && question != questionWhyJSON {
		return "This socket answers only \"" + questionWhy + "\" and \"" + questionWhyJSON + "\".\n"
	}
	if !s.allow(time.Now()) {
		return tooMany
	}
	open := channel.Open{Kind: channel.OpenWhy, JSON: question == questionWhyJSON}
	stream, answer, err := openStream(ctx, s.session, open, whyDeadline)
	if err != nil {
		return "The host did not answer.\n"
	}
	_ = stream.Close()
	if !answer.OK {
		return answer.Error + "\n"
	}
	return answer.Text
}

// allow takes a token, if there is one.
func (s *whyServer) allow(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = min(whyBurst, s.tokens+float64(now.Sub(s.filled))/float64(whyInterval))
	s.filled = now
	if s.tokens < 1 {
		return false
	}
	s.tokens--
	return true
}
