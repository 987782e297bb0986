// Command talker is the sender and the receiver inside of a sandbox: it does what its input
// says, a line of JSON at a time, and answers each with what it saw and how long that took.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Ask is one thing to do. Exactly one of the first fields is set.
type Ask struct {
	Get     string   `json:"get,omitempty"`     // a URL
	Resolve string   `json:"resolve,omitempty"` // a name
	Run     []string `json:"run,omitempty"`     // a program of the sandbox
	Spin    int      `json:"spin,omitempty"`    // so many rounds of work
	Anew    bool     `json:"anew,omitempty"`    // with Get: on a connection of its own
	Method  string   `json:"method,omitempty"`  // with Get: another one
	Body    string   `json:"body,omitempty"`    // with Get
}

// Answer is what was seen.
type Answer struct {
	Text  string `json:"text"`
	Nanos int64  `json:"nanos"`
	Error string `json:"error,omitempty"` // nothing was seen
}

// most is how much of an answer's body is told.
const most = 8 << 10

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "talker:", err)
		os.Exit(1)
	}
}

func serve(from io.Reader, to io.Writer) error {
	in, out := json.NewDecoder(from), json.NewEncoder(to)
	kept := &http.Client{Transport: transport()}
	for {
		var one Ask
		if err := in.Decode(&one); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		began := time.Now()
		text, err := do(kept, one)
		answer := Answer{Text: text, Nanos: time.Since(began).Nanoseconds()}
		if err != nil {
			answer.Error = cmp.Or(err.Error(), "unknown")
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
}

func transport() *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, DisableCompression: true}
}

func do(kept *http.Client, one Ask) (string, error) {
	switch {
	case one.Get != "" && one.Anew:
		own := transport()
		own.TLSClientConfig.InsecureSkipVerify = true // the host that is asked so has a certificate of the test's
		defer own.CloseIdleConnections()
		return get(&http.Client{Transport: own}, one)
	case one.Get != "":
		return get(kept, one)
	case one.Resolve != "":
		addresses, err := net.DefaultResolver.LookupHost(context.Background(), one.Resolve)
		return fmt.Sprint(addresses, err), nil
	case len(one.Run) > 0:
		said, err := exec.Command(one.Run[0], one.Run[1:]...).CombinedOutput()
		return fmt.Sprint(string(said), err), nil
	}
	return spin(one.Spin), nil
}

// get is all that can be seen of an answer.
func get(c *http.Client, one Ask) (string, error) {
	r, err := http.NewRequestWithContext(context.Background(), cmp.Or(one.Method, http.MethodGet), one.Get, strings.NewReader(one.Body))
	if err != nil {
		return "", err
	}
	resp, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var text bytes.Buffer
	fmt.Fprintln(&text, resp.Proto, resp.Status)
	var lines []string
	for name, values := range resp.Header {
		lines = append(lines, name+": "+strings.Join(values, ", "))
	}
	slices.Sort(lines)
	fmt.Fprintln(&text, strings.Join(lines, "\n"))
	if _, err := io.Copy(&text, io.LimitReader(resp.Body, most)); err != nil {
		return "", err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return text.String(), err
}

// spin keeps all processors that the sandbox sees busy for so many rounds.
func spin(rounds int) string {
	var all sync.WaitGroup
	sums := make([]uint64, runtime.NumCPU())
	for i := range sums {
		all.Go(func() { //nolint:forbidigo // a panic here ends a test's program
			for range rounds * 1000 {
				sums[i] = sums[i]*6364136223846793005 + 1442695040888963407
			}
		})
	}
	all.Wait()
	return ""
}
