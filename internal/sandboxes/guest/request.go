package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

const (
	// questionRequest is followed by a space, the length of a JSON document
	// (requestAsk), a newline, and the document.
	questionRequest = "request"
	maxRequestAsk   = 64 << 10
	requestDeadline = 2 * time.Minute
)

const requestHelp = `Asks for packages before anything fails. Each is looked up and judged by the
policy; what would wait for a person is put before one, with your reason.
Nothing is installed by this, and nothing can be approved from here.

  cofferdam request ECOSYSTEM PACKAGE... --because "REASON" [--json]

ECOSYSTEM is python, node or go. A PACKAGE may name a version: name==1.2 for
python, name@1.2 for node and go; without one, the newest that may be had.

  cofferdam request python rich attrs==23.2.0 --because "tables in the report"
  cofferdam request node left-pad@1.3.0 --because "the build needs it"
`

// requestAsk is what a process of the sandbox asks for over the agent's socket.
type requestAsk struct {
	Request channel.Request `json:"request"`
	JSON    bool            `json:"json,omitempty"`
}

// parseRequest reads the words after `cofferdam request`.
func parseRequest(args []string) (requestAsk, error) {
	var ask requestAsk
	var ecosystem string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		because, isBecause := strings.CutPrefix(arg, "--because=")
		switch {
		case arg == "--json":
			ask.JSON = true
		case isBecause:
			ask.Request.Because = because
		case arg == "--because" && i+1 < len(args):
			i++
			ask.Request.Because = args[i]
		case arg == "--because":
			return ask, fmt.Errorf("--because needs the reason after it")
		case strings.HasPrefix(arg, "-"):
			return ask, fmt.Errorf("there is no flag %.40q here", arg)
		case ecosystem == "":
			of, err := pkgref.EcosystemCalled(arg)
			if err != nil {
				return ask, err
			}
			ecosystem = string(of)
		default:
			name, version := splitWanted(ecosystem, arg)
			ask.Request.Items = append(ask.Request.Items, channel.RequestItem{Ecosystem: ecosystem, Name: name, Version: version})
		}
	}
	switch {
	case ecosystem == "" || len(ask.Request.Items) == 0:
		return ask, fmt.Errorf("name the ecosystem and at least one package")
	case len(ask.Request.Items) > channel.MaxRequestItems:
		return ask, fmt.Errorf("at most %d packages can be asked for at one time", channel.MaxRequestItems)
	case len(ask.Request.Because) > channel.MaxRequestReason:
		return ask, fmt.Errorf("the reason is %d bytes long; at most %d", len(ask.Request.Because), channel.MaxRequestReason)
	}
	return ask, nil
}

// splitWanted separates a version from a name. A scope's @ is no version.
func splitWanted(ecosystem, text string) (name, version string) {
	if pkgref.Ecosystem(ecosystem).Traits().Between == "" {
		if name, version, ok := strings.Cut(text, "=="); ok {
			return name, version
		}
	}
	if i := strings.LastIndexByte(text, '@'); i > 0 {
		return text[:i], text[i+1:]
	}
	return text, ""
}

// askRequest runs `cofferdam request` in the sandbox.
func askRequest(ctx context.Context, args []string, socket string, stdout, stderr io.Writer) int {
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		_, _ = io.WriteString(stdout, requestHelp)
		return 0
	}
	asked, err := parseRequest(args)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "cofferdam: %s\n\n%s", err, requestHelp)
		return 2
	}
	doc, err := json.Marshal(asked)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "cofferdam: %s\n", err)
		return 1
	}
	return askAgent(ctx, fmt.Sprintf("%s %d\n%s", questionRequest, len(doc), doc), socket, stdout, stderr)
}

// requestText reads the document that follows a request's line, has the host
// answer it, and gives the host's text.
func (s *whyServer) requestText(ctx context.Context, length string, in io.Reader) string {
	n, err := strconv.Atoi(length)
	if err != nil || n <= 0 || n > maxRequestAsk {
		return answerFailed + "A request is a document of 1 to " + strconv.Itoa(maxRequestAsk) + " bytes.\n"
	}
	doc := make([]byte, n)
	if _, err := io.ReadFull(in, doc); err != nil {
		return answerFailed + "The request ended early.\n"
	}
	var asked requestAsk
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&asked); err != nil {
		return answerFailed + "The request is not a document that can be read.\n"
	}
	stream, answer, err := openStream(ctx, s.session, channel.Open{Kind: channel.OpenRequest, JSON: asked.JSON, Request: &asked.Request}, requestDeadline)
	if err != nil {
		return answerFailed + "The host did not answer.\n"
	}
	_ = stream.Close()
	return answerText(answer)
}
