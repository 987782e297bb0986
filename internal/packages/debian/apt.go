package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// configuration is all that apt reads, written for one set. The guards stand last: what
// the host's settings say can't open them.
func (a *Archive) configuration(work, architecture string, settings []string) string {
	var b strings.Builder
	set := func(name, value string) { fmt.Fprintf(&b, "%s %q;\n", name, value) }
	for _, line := range settings {
		b.WriteString(line + "\n")
	}
	etc := filepath.Join(a.cfg.Dir, "etc")
	set("Dir::Etc", etc)
	set("Dir::Etc::main", "none")
	set("Dir::Etc::parts", "none.d")
	set("Dir::Etc::sourcelist", filepath.Join(work, "sources.list"))
	set("Dir::Etc::sourceparts", "none.d")
	set("Dir::Etc::preferences", "none")
	set("Dir::State", work)
	set("Dir::State::lists", filepath.Join(a.cfg.Dir, "lists")+"/")
	set("Dir::State::status", filepath.Join(work, "status"))
	set("Dir::Cache", filepath.Join(work, "cache"))
	set("Dir::Cache::archives", filepath.Join(work, "archives")+"/")
	set("Dir::Log", work)
	set("APT::Architecture", architecture)
	b.WriteString("#clear APT::Architectures;\n")
	fmt.Fprintf(&b, "APT::Architectures { %q; };\n", architecture)
	set("APT::Cmd::Pattern-Only", "true") // a name is one, and no regular expression
	set("APT::Install-Recommends", "false")
	set("APT::Install-Suggests", "false")
	set("APT::Update::Error-Mode", "any") // a list that can't be had is not an older one's turn
	set("APT::Get::AllowUnauthenticated", "false")
	set("Acquire::AllowInsecureRepositories", "false")
	set("Acquire::AllowWeakRepositories", "false")
	set("Acquire::AllowDowngradeToInsecureRepositories", "false")
	set("Acquire::ForceHash", "SHA256")
	set("Acquire::Languages", "none")
	return b.String()
}

// runApt runs apt-get and returns what it said.
func (a *Archive) runApt(ctx context.Context, work string, args ...string) (string, error) {
	program := executable.System("apt-get", a.cfg.Writable)
	if program == "" {
		return "", fault.New(fault.ErrUnavailable, "this host has no apt, with which packages of the distribution are chosen and verified: install it, or build a template with what is needed")
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = work
	cmd.Env = append(executable.SystemEnvironment(), "APT_CONFIG="+filepath.Join(work, "apt.conf"))
	cmd.WaitDelay = 5 * time.Second
	out, said := &boundedOutput{}, &boundedOutput{}
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case out.cut || said.cut:
		return "", fault.New(fault.ErrExhausted, "apt said more than %d bytes", maxOutput)
	}
	if why := complaint(said.String()); err != nil || why != "" {
		a.cfg.Log.Warn("apt refused", "args", args, "err", err, "said", text.Shorten(withoutCredentials(said.String()), 4_096))
		return out.String(), &aptError{why: why, err: err}
	}
	return out.String(), nil
}

// aptError is what apt says went wrong.
type aptError struct {
	why string // a line of apt's, for clients
	err error
}

// Error implements error.
func (e *aptError) Error() string { return "apt: " + e.why }

// Unwrap is how it ended.
func (e *aptError) Unwrap() error { return e.err }

// complaint says of apt's words what went wrong, "" if nothing did: a line that is more
// than a warning, or a warning that something was not had or not verified. Where the
// mirror is its readers need not know.
func complaint(said string) string {
	first := ""
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		for _, r := range reasons() {
			if strings.Contains(line, r.words) {
				return r.means
			}
		}
		if content, serious := strings.CutPrefix(line, "E: "); serious && first == "" {
			first = "apt's words are in the daemon's log"
			if !strings.ContainsAny(content, "/[") {
				first = text.Shorten(content, 300)
			}
		}
	}
	return first
}

// reason is what words of apt's mean.
type reason struct{ words, means string }

// reasons are in the order in which they count.
func reasons() []reason {
	return []reason{
		{"unexpected size", "a file has another size than its list says"},
		{"Hash Sum mismatch", "a file is another than its list says"},
		{"is expired", "its lists have expired"},
		{"is not valid yet", "its lists are of a time to come"},
		{"is not signed", "its lists are not signed"},
		{"GPG error", "its lists are not signed by a key of the distribution"},
		{"no longer signed", "its lists are not signed any more"},
		{"Clearsigned file isn't valid", "its lists are not signed"},
		{"Could not resolve", "it can't be reached"},
		{"Could not connect", "it can't be reached"},
		{"Cannot initiate the connection", "it can't be reached"},
		{"  404  ", "it does not have a file that its lists name"},
		{"Failed to fetch", "a file can't be had"},
		{"index files failed to download", "a list can't be had"},
	}
}

// credentials finds what a URI may have before its host: all up to the last @ of a word, whatever letters
// are in it. Somebody may have written a password as it is.
var credentials = regexp.MustCompile(`://\S*@`)

func withoutCredentials(text string) string {
	return credentials.ReplaceAllString(text, "://")
}

// aptReason is a sentence about what apt refused: what could not be done, and apt's reason.
func aptReason(err error, what string) error {
	failed, ok := errors.AsType[*aptError](err)
	if !ok {
		return err
	}
	if failed.why == "" {
		return fault.Wrap(fault.ErrUnavailable, err, "%s; the daemon's log has apt's words", what)
	}
	return fault.Wrap(fault.ErrUnavailable, err, "%s: %s", what, failed.why)
}

// boundedOutput keeps the first of what is written.
type boundedOutput struct {
	bytes.Buffer

	cut bool
}

// Write implements io.Writer.
func (b *boundedOutput) Write(p []byte) (int, error) {
	room := min(len(p), maxOutput-b.Len())
	b.cut = b.cut || room < len(p)
	_, _ = b.Buffer.Write(p[:room]) // never fails
	return len(p), nil
}
