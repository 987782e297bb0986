package foreign

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/conversion"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
)

// Format is whose settings a text has.
type Format string

// DevContainer is the one format that is read: a devcontainer.json.
const DevContainer Format = "devcontainer"

// Formats are all of them.
func Formats() []Format { return []Format{DevContainer} }

// Note says what became of a key that is not simply kept.
type Note struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	What   string `json:"what"`
	Says   string `json:"says"`
}

// Result is what a project gets.
type Result struct {
	Format   Format
	Settings []byte // cofferdam.yaml
	Notes    []Note
}

// Options are what the text does not say itself.
type Options struct {
	Format Format // "": told by what is in the text
	Dir    string // the project's, absolute: what settings have of paths is in relation to it
	Home   string // of the person, for ~
}

// inside is where a sandbox has the project.
const inside = "/workspace"

// settings are what is written, in this order.
type settings struct {
	Workspace   string            `yaml:"workspace,omitempty"`
	Mounts      []string          `yaml:"mounts,omitempty"`
	Ports       []string          `yaml:"ports,omitempty"`
	Environment map[string]string `yaml:"environment,omitempty"`
	Hooks       struct {
		Start []string `yaml:"start,omitempty"`
	} `yaml:"hooks,omitempty"`
}

// converter is one conversion.
type converter struct {
	source string
	opts   Options
	made   settings
	notes  []Note
	errs   []string
}

// Convert reads the settings of another tool. source is their name in messages. An error is
// fault.ErrInvalid, and has line and column.
func Convert(source string, data []byte, opts Options) (Result, error) {
	root, err := parseText(source, data)
	if err != nil {
		return Result{}, err
	}
	c := &converter{source: source, opts: opts}
	if root.kind != object {
		return Result{}, fault.Invalid("%s:%d:%d: the settings have to be an object, and are %s", source, root.line, root.column, root.kind)
	}
	if c.format(root) != DevContainer {
		return Result{}, fault.Invalid("%s has no key of a devcontainer.json; if it is one, say so with --from devcontainer", source)
	}
	c.devContainer(root)
	if len(c.errs) > 0 {
		return Result{}, fault.Invalid("%s", strings.Join(c.errs, "\n"))
	}
	return c.result()
}

// format is the one that was named, or that the keys are of.
func (c *converter) format(root *node) Format {
	known := []string{"image", "build", "dockerFile", "dockerComposeFile", "features", "postCreateCommand", "forwardPorts", "customizations"}
	if c.opts.Format == "" && slices.ContainsFunc(known, func(key string) bool { return root.getValue(key) != nil }) {
		c.opts.Format = DevContainer
	}
	return c.opts.Format
}

// result writes what was made, and reads it as a run would.
func (c *converter) result() (Result, error) {
	r := Result{Format: c.opts.Format}
	var err error
	if r.Settings, err = c.writtenSettings(); err != nil {
		return Result{}, err
	}
	if _, err := project.Parse(project.File, r.Settings); err != nil {
		return Result{}, fault.Invalid("%s makes no settings that can be read: %s", c.source, err)
	}
	slices.SortStableFunc(c.notes, func(a, b Note) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	r.Notes = c.notes
	return r, nil
}

// writtenSettings writes the settings, with a head for people.
func (c *converter) writtenSettings() ([]byte, error) {
	var text bytes.Buffer
	fmt.Fprintf(&text, "# Made of %s by cofferdam project import.\n# Read it, and then: cofferdam project allow\n", conversion.Clean(filepath.Base(c.source)))
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(c.made); err != nil {
		return nil, fmt.Errorf("write the settings: %w", err)
	}
	return text.Bytes(), nil
}

// failAt notes an error. No more than twenty are told.
func (c *converter) failAt(n *node, format string, args ...any) {
	if len(c.errs) < 20 {
		c.errs = append(c.errs, fmt.Sprintf("%s:%d:%d: %s", c.source, n.line, n.column, fmt.Sprintf(format, args...)))
	}
}

func (c *converter) noteAt(n *node, what, format string, args ...any) {
	c.notes = append(c.notes, Note{Line: n.line, Column: n.column, What: clipText(what), Says: fmt.Sprintf(format, args...)})
}

// leaveOut notes a key that is left out, with the reason.
func (c *converter) leaveOut(n *node, what, format string, args ...any) {
	c.noteAt(n, what, "left out: "+format, args...)
}

// wantKind tells whether a value is of a kind; another one is an error.
func (c *converter) wantKind(n *node, what string, kinds ...jsonKind) bool {
	if slices.Contains(kinds, n.kind) {
		return true
	}
	var words []string
	for _, k := range kinds {
		words = append(words, string(k))
	}
	c.failAt(n, "%s has to be %s, and is %s", what, strings.Join(words, " or "), n.kind)
	return false
}

// textsOf are the elements of a list of texts; n may be nil.
func (c *converter) textsOf(n *node, what string) []*node {
	if n == nil || !c.wantKind(n, what, array) {
		return nil
	}
	for _, e := range n.items {
		if !c.wantKind(e, "an element of "+what, textKind) {
			return nil
		}
	}
	return n.items
}

// clipText clips a text of the settings for a message.
func clipText(s string) string { return text.Shorten(conversion.Clean(s), 100) }
