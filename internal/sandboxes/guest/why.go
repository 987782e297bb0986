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

	"github.com/cofferdam-dev/cofferdam/internal/kit/accept"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// The one line that a client of the socket may say: why, then --json if the answer is
// for a program, then the id of a request if it is about that alone.
const (
	questionWhy  = "why"
	questionJSON = "--json"
)

// An answer that is none begins with its exit code, as a byte that no text begins with.
const (
	answerFailed = "\x01"
	answerNoSuch = "\x02"
)

const (
	whyDeadline = 5 * time.Second
	whyClients  = 4  // at once
	whyBurst    = 10 // questions, then one in each whyInterval
	whyInterval = 200 * time.Millisecond
	whyLine     = 64 // bytes

	tooMany = answerFailed + "Too many questions: ask again in a second.\n"
)

// whyServer answers `cofferdam why`. Any process of the sandbox may ask.
type whyServer struct {
	session  guestLine
	listener net.Listener
	clients  chan struct{} // a slot for each client being served

	mu     sync.Mutex // guards the rest
	tokens float64
	filled time.Time
}

func newWhyServer(session guestLine) *whyServer {
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
	s.listener = accept.Patient(listener, nil)
	return os.Chmod(path, 0o666) //nolint:gosec // every user of the sandbox may ask
}

// serveClients answers clients until close, and waits for those being served.
func (s *whyServer) serveClients(ctx context.Context) {
	var served sync.WaitGroup
	defer served.Wait()
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		select {
		case s.clients <- struct{}{}:
			served.Go(func() {
				defer func() { <-s.clients }()
				s.answerClient(ctx, conn)
			})
		default:
			_ = conn.Close()
		}
	}
}

func (s *whyServer) closeServer() { _ = s.listener.Close() }

// answerClient reads one question and writes the host's text.
func (s *whyServer) answerClient(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	hurried, cancel := s.session.clock.withTimeout(ctx, whyDeadline)
	defer cancel()
	lift := limitIO(hurried, conn)
	in := bufio.NewReaderSize(io.LimitReader(conn, whyLine+maxRequestAsk), whyLine)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return
	}
	question := string(line[:len(line)-1])
	length, isRequest := strings.CutPrefix(question, questionRequest+" ")
	if !isRequest {
		_, _ = io.WriteString(conn, s.textFor(ctx, question))
		return
	}
	if !s.allowQuestion(time.Now()) {
		_, _ = io.WriteString(conn, tooMany)
		return
	}
	if !lift() {
		return
	}
	bounded, cancel := s.session.clock.withTimeout(ctx, requestDeadline)
	defer cancel()
	defer limitIO(bounded, conn)()
	_, _ = io.WriteString(conn, s.requestText(ctx, length, in))
}

// textFor is the answer to a question, or a sentence on why there is none.
func (s *whyServer) textFor(ctx context.Context, question string) string {
	open, understood := parseQuestion(question)
	if !understood {
		return answerFailed + "This socket answers only \"" + questionWhy + " [" + questionJSON + "] [REQUEST]\".\n"
	}
	if !s.allowQuestion(time.Now()) {
		return tooMany
	}
	stream, answer, err := openStream(ctx, s.session, open, whyDeadline)
	if err != nil {
		return answerFailed + "The host did not answer.\n"
	}
	_ = stream.Close()
	return answerText(answer)
}

func answerText(answer channel.Reply) string {
	switch {
	case answer.OK:
		return answer.Text
	case answer.Code == channel.CodeNotFound:
		return answerNoSuch + answer.Error + "\n"
	}
	return answerFailed + answer.Error + "\n"
}

// parseQuestion reads a client's line. An id is what ids are made of, so that nothing
// else gets to the host.
func parseQuestion(question string) (channel.Open, bool) {
	words := strings.Split(question, " ")
	open := channel.Open{Kind: channel.OpenWhy}
	if words[0] != questionWhy {
		return open, false
	}
	words = words[1:]
	if len(words) > 0 && words[0] == questionJSON {
		open.JSON, words = true, words[1:]
	}
	if len(words) == 1 && isRequestID(words[0]) {
		open.ID, words = words[0], nil
	}
	return open, len(words) == 0
}

// isRequestID tells whether a word can be the id of a request: ap-k3m7qx, cvfkyk4n.
func isRequestID(word string) bool {
	return len(word) > 0 && len(word) <= 40 && word[0] != '-' && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// allowQuestion takes a token, if there is one.
func (s *whyServer) allowQuestion(now time.Time) bool {
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
