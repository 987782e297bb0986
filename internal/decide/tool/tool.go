package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Tool is a function of the host.
type Tool struct {
	Name        string
	Description string
	Schema      *Schema
	// JSON tells that what the tool answers is JSON; else it is text.
	JSON bool
	// Record tells that the log keeps a call's arguments, and not their digest alone.
	Record bool
	Limits Limits
	Runner Runner

	secrets Secrets // nil: there are none
}

// Secrets are the values that no tool's answer may have in it, in whatever form: those by which
// endpoints know who calls them, and those of runs. With fetch those are had first that nobody has had yet; an error is
// that some can't be had.
type Secrets func(fetch bool) ([]string, error)

// In tells whether one is in a text, or may be because they can't be had.
func (s Secrets) In(text string) bool { return s.isInText(text, true) }

func (s Secrets) isInText(text string, fetch bool) bool {
	if s == nil {
		return false
	}
	sought, err := s(fetch)
	return err != nil || len(sought) > 0 && exchange.Finder(sought...)([]byte(text))
}

// haveAll fetches them. An error is for the client of a tool that is not called then.
func (s Secrets) haveAll() error {
	if s == nil {
		return nil
	}
	if _, err := s(true); err != nil {
		return &Failure{Sentence: "the tool is not called, since a secret of a tool can't be had, so nobody could see whether it is in the answer; the operator finds why in the daemon's log", Cause: err}
	}
	return nil
}

// absent is an error if one is in any of these texts of an answer, or nobody can see whether one is: a value may
// have ended while the tool ran.
func (s Secrets) absent(texts ...string) error {
	if s == nil {
		return nil
	}
	sought, err := s(true)
	if err != nil {
		return &Failure{Sentence: "the tool was called, but its answer is not passed on: a secret of a tool can't be had, so nobody can see whether it is in the answer; the operator finds why in the daemon's log", Cause: err}
	}
	if len(sought) == 0 {
		return nil
	}
	found := exchange.Finder(sought...)
	if slices.ContainsFunc(texts, func(text string) bool { return found([]byte(text)) }) {
		return Betrayed()
	}
	return nil
}

// Betrayed is the failure of a tool whose answer has one in it.
func Betrayed() *Failure {
	return &Failure{Sentence: "the tool answered with a secret that Cofferdam keeps from sandboxes, so its answer is not passed on"}
}

// Limits bound one call. A zero field is its default.
type Limits struct {
	Time   time.Duration // that a call may take; 30 s
	Output int64         // bytes that the tool may answer; 1 MiB
}

// The greatest limits that can be set. MaxOutput keeps an answer below what the way to the
// sandbox takes.
const (
	MaxTime   = time.Hour
	MaxOutput = 16 << 20
)

func (l Limits) withDefaults() Limits {
	if l.Time <= 0 {
		l.Time = 30 * time.Second
	}
	if l.Output <= 0 {
		l.Output = 1 << 20
	}
	return l
}

// Runner does a tool's work on the host. Implementations pass package tooltest's suite.
type Runner interface {
	// Definition is what it runs, as far as the operator says it: two runners that do other
	// work have another one. It is for a digest, and nobody reads it: what may be a secret is
	// in it only where the work depends on it.
	Definition() string
	// Run hands the arguments to the tool and gives what it answers, at most as many
	// bytes as the call allows. When ctx ends, so does what was begun for the call, as
	// far as the runner's documentation says, and Run returns soon. An error that is a
	// *Failure may be told to the sandbox by its Sentence, and no other.
	Run(ctx context.Context, call Call) ([]byte, error)
}

// Call is one use of a tool by a sandbox.
type Call struct {
	Tool         string
	Run, Sandbox string // who calls
	Arguments    string // JSON, as Arguments.Text
	MaxOutput    int64  // bytes
	// Judged is the Definition of the tool that the call was judged for: another one is not
	// called. "": any.
	Judged string
	// Defined is the Definition of the runner that is called, as Tool.Call found it: a runner
	// that is another by now is Changed. "": any.
	Defined string
}

// Failure is why a call has no result.
type Failure struct {
	// Sentence is for whoever called: it has nothing of what the tool said.
	Sentence string
	// Exit is the code that the tool's program ended with, if that is why.
	Exit *int
	// Cause is for the operator, and may have that; may be nil.
	Cause error
}

// Error implements error.
func (f *Failure) Error() string {
	if f.Cause == nil {
		return f.Sentence
	}
	return f.Sentence + ": " + f.Cause.Error()
}

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// TooMuch is the failure of a tool that answers more than it may.
func TooMuch(most int64) *Failure {
	return &Failure{Sentence: "the tool answered more than the " + Size(most) + " that it may, and was ended"}
}

// Changed is the failure of a call whose tool is another one than was judged, by its program's
// bytes say.
func Changed() *Failure {
	return &Failure{Sentence: "the tool was changed after this call was judged, so it was not called; call it again, and it is judged anew"}
}

// Definition is the digest of all that the tool is, "sha256:" and hexadecimal: what it is called
// and says of itself, which arguments it takes, what it may do and what runs it.
func (t *Tool) Definition() string { return t.definition(t.Runner.Definition()) }

// definition is that of the tool with a runner of this one.
func (t *Tool) definition(runner string) string {
	schema := ""
	if t.Schema != nil {
		schema = t.Schema.Text()
	}
	limits := t.Limits.withDefaults()
	h := sha256.New()
	for _, part := range []string{
		t.Name, t.Description, schema, strconv.FormatBool(t.JSON), strconv.FormatBool(t.Record), limits.Time.String(), strconv.FormatInt(limits.Output, 10), runner,
	} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part) // a hash takes all
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// name is what a tool can be called: what the toolkit's policies have, and a guest can
// type.
var name = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// CheckName refuses what no tool can be called.
func CheckName(s string) error {
	if !name.MatchString(s) {
		return fault.Invalid("%q is no name of a tool: a letter, then letters, digits, _, . and -, at most 64 in all", s[:min(len(s), 80)])
	}
	return nil
}

// Call runs the tool with arguments that its schema takes, and gives its result as JSON. It is
// for the caller to have the call judged and recorded first.
func (t *Tool) Call(ctx context.Context, call Call) (result string, err error) {
	limits := t.Limits.withDefaults()
	call.Tool, call.MaxOutput, call.Defined = t.Name, limits.Output, t.Runner.Definition()
	if call.Judged != "" && t.definition(call.Defined) != call.Judged {
		return "", Changed()
	}
	if err := t.secrets.haveAll(); err != nil {
		return "", err
	}
	within, cancel := context.WithTimeout(ctx, limits.Time)
	defer cancel()
	output, err := t.Runner.Run(within, call)
	if err != nil {
		err = t.silent(err)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return "", &Failure{Sentence: "the call was ended before the tool had answered", Cause: err}
	case err != nil && within.Err() != nil:
		return "", &Failure{Sentence: "the tool did not answer within " + limits.Time.String() + ", and was ended", Cause: err}
	case err != nil:
		return "", asFailure(err)
	case int64(len(output)) > limits.Output:
		return "", TooMuch(limits.Output)
	}
	if result, err = t.result(output); err != nil {
		return "", err
	}
	if err := t.secrets.absent(string(output), result); err != nil {
		return "", err
	}
	return result, nil
}

// silent is an error without what it was told, if that has a secret in it.
func (t *Tool) silent(err error) error {
	if !t.secrets.In(err.Error()) {
		return err
	}
	silent := Failure{Sentence: "the tool could not be run", Cause: errors.New("its words have a secret in them, and are left out")}
	if f, ok := errors.AsType[*Failure](err); ok {
		silent.Exit = f.Exit
		if !t.secrets.In(f.Sentence) {
			silent.Sentence = f.Sentence
		}
	}
	return &silent
}

func asFailure(err error) error {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{Sentence: "the tool could not be run; the daemon's log says why", Cause: err}
}

// maxResult bounds a result in its JSON form, in which some bytes of an answer are six.
const maxResult = MaxOutput + MaxOutput/2

// result is what a tool answered as one JSON value.
func (t *Tool) result(output []byte) (string, error) {
	text, err := t.inJSON(output)
	if err == nil && len(text) > maxResult {
		return "", &Failure{Sentence: "the tool answered what is too long to be passed on as JSON"}
	}
	return text, err
}

func (t *Tool) inJSON(output []byte) (string, error) {
	if t.JSON {
		form := jsontext.Value(output)
		if err := form.Compact(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false)); err != nil {
			return "", &Failure{Sentence: "the tool answered what is not JSON, as its declaration says that it would", Cause: err}
		}
		return string(form), nil
	}
	if !utf8.Valid(output) {
		return "", &Failure{Sentence: "the tool answered what is not text in UTF-8"}
	}
	text, err := json.Marshal(string(output))
	if err != nil {
		return "", &Failure{Sentence: "the tool's answer can't be passed on", Cause: err}
	}
	return string(text), nil
}
