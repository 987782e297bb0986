package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool/command"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool/endpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// Tool is a function of the host that sandboxes may call whose policies list it in
// tool_allowlist. It is a command or an endpoint, and answers with what that writes.
type Tool struct {
	// Name is what policies and callers know it by.
	Name string `yaml:"name"`
	// Description is told to who asks inside which tools there are.
	Description string `yaml:"description"`
	// Arguments are what it takes, which is one JSON object; without a schema any.
	Arguments Schema `yaml:"arguments"`
	// Command is a program of the host by its absolute path, and what it is told on its
	// command line. A call's arguments are on its standard input, as JSON.
	Command []string `yaml:"command"`
	// User is whom the command runs as. A daemon that is root needs one, and it can't be root.
	User string `yaml:"user"`
	// Directory is where the command runs; /. No sandbox may write there.
	Directory string `yaml:"directory"`
	// Environment is all that the command has, beside COFFERDAM_RUN and COFFERDAM_SANDBOX.
	Environment map[string]string `yaml:"environment"`
	// Endpoint is a URL to which a call's arguments are posted. No redirect is followed.
	Endpoint string `yaml:"endpoint"`
	// Secret is one of secrets by which the endpoint knows the daemon, and whose hosts name the
	// endpoint's. It is put into the header that its declaration sets; Authorization, as
	// Bearer, if that sets none. The endpoint is of https, or of this machine.
	Secret string `yaml:"secret"`
	// Timeout is after how long a call is ended; 30s, at most 1h.
	Timeout Duration `yaml:"timeout"`
	// MaxOutput is how much it may answer; 1MiB, at most 16MiB.
	MaxOutput Bytes `yaml:"max_output"`
	// RecordArguments has the log keep the beginning of each call's arguments, 8 KiB of it.
	// Without it, the log has their digest and size.
	RecordArguments bool `yaml:"record_arguments"`
	// Answers is what it answers: text (the default) or json.
	Answers string `yaml:"answers"`
}

// Schema is a JSON Schema, written as YAML.
type Schema string

// UnmarshalYAML keeps the schema as JSON.
func (s *Schema) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode && n.Kind != yaml.AliasNode {
		return fmt.Errorf("line %d, column %d: a JSON Schema is a map", n.Line, n.Column)
	}
	var value map[string]any
	if err := n.Decode(&value); err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("line %d, column %d: it is no JSON: %w", n.Line, n.Column, err)
	}
	if _, err := tool.ParseSchema(string(text)); err != nil {
		return misplaced(n, err)
	}
	*s = Schema(text)
	return nil
}

// misplaced says where in the file a schema is wrong.
func misplaced(n *yaml.Node, err error) error {
	where := "arguments"
	if wrong, ok := errors.AsType[*tool.SchemaError](err); ok {
		for _, step := range wrong.Path {
			below := childOf(n, step)
			if below == nil {
				break
			}
			n, where = below, where+"."+step
		}
	}
	return fmt.Errorf("line %d, column %d: %s: %w", n.Line, n.Column, where, err)
}

// childOf is the value below a name or a number; nil: there is none.
func childOf(n *yaml.Node, step string) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind { //nolint:exhaustive // the others have nothing below them
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && 0 <= i && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}

// ToolSet are the tools as the daemon has them called, whose endpoints get secrets from the broker:
// the one that runs get theirs from, so that the values of each are known to all. No program is run
// that lies where a sandbox may write now; writable nil: nowhere.
func (c Config) ToolSet(broker *secret.Broker, writable func() []hostpath.Tree) (*tool.Set, error) {
	var all []tool.Tool
	making := &toolMaking{broker: broker, writable: writable}
	for i, t := range c.Tools {
		one, err := t.makeTool(making)
		if err != nil {
			return nil, fmt.Errorf("tools[%d]%w", i, err)
		}
		all = append(all, one)
	}
	set, err := tool.NewSet(all, making.secrets, making.knownValues)
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	return set, nil
}

// toolMaking is what tools are made of, and all secrets that their endpoints get.
type toolMaking struct {
	broker   *secret.Broker
	writable func() []hostpath.Tree
	had      []tool.Secrets
}

// secrets are the values of all tools' secrets: in the answer of none may be another's.
func (m *toolMaking) secrets(fetch bool) (all []string, err error) {
	for _, had := range m.had {
		some, err := had(fetch)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// knownValues are the values of all secrets that runs and tools have: a run can have the service that gets one keep it,
// in a note for instance, and a tool that asks the same service would tell it.
func (m *toolMaking) knownValues(bool) (all []string, err error) {
	for _, v := range m.broker.Known() {
		all = append(all, v.Reveal())
	}
	return all, nil
}

// makeTool checks an entry. Its errors go on after the entry's place.
func (t Tool) makeTool(of *toolMaking) (tool.Tool, error) {
	one := tool.Tool{
		Name: t.Name, Description: t.Description, JSON: t.Answers == "json", Record: t.RecordArguments,
		Limits: tool.Limits{Time: time.Duration(t.Timeout), Output: int64(t.MaxOutput)},
	}
	if err := tool.CheckName(t.Name); err != nil {
		return one, fmt.Errorf(".name: %w", err)
	}
	switch {
	case t.Answers != "" && t.Answers != "text" && t.Answers != "json":
		return one, fmt.Errorf(".answers is %q; it is text or json", t.Answers)
	case one.Limits.Time > tool.MaxTime:
		return one, fmt.Errorf(".timeout is %s; %s is the most", one.Limits.Time, tool.MaxTime)
	case one.Limits.Output > tool.MaxOutput:
		return one, fmt.Errorf(".max_output is %d bytes; %s is the most", one.Limits.Output, tool.Size(tool.MaxOutput))
	case (len(t.Command) > 0) == (t.Endpoint != ""):
		return one, fmt.Errorf(" is either a command or an endpoint; it has to be one of them")
	}
	var err error
	if one.Schema, err = tool.ParseSchema(string(t.Arguments)); err != nil {
		return one, fmt.Errorf(".arguments: %w", err)
	}
	one.Runner, err = t.runner(of)
	return one, err
}

// endpointRunner is the runner of an endpoint.
func (t Tool) endpointRunner(of *toolMaking) (tool.Runner, error) {
	if t.User != "" || t.Directory != "" || len(t.Environment) > 0 {
		return nil, fmt.Errorf(" is an endpoint; user, directory and environment are a command's")
	}
	e, err := endpoint.New(t.Endpoint)
	if err != nil {
		return nil, fmt.Errorf(".endpoint: %w", err)
	}
	if t.Secret != "" {
		credential, had, err := credentialOf(t.Secret, t.Endpoint, of.broker)
		if err != nil {
			return nil, fmt.Errorf(".secret: %w", err)
		}
		e.Authorize(credential)
		of.had = append(of.had, had)
	}
	return e, nil
}

func (t Tool) runner(of *toolMaking) (tool.Runner, error) {
	if t.Endpoint != "" {
		return t.endpointRunner(of)
	}
	if t.Secret != "" {
		return nil, fmt.Errorf(" is a command; secret is an endpoint's")
	}
	as, err := t.runsAs()
	if err != nil {
		return nil, fmt.Errorf(".user: %w", err)
	}
	c := &command.Command{Argv: t.Command, Dir: t.Directory, Environment: t.Environment, User: as, Writable: of.writable}
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf(".command: %w", err)
	}
	return c, nil
}

// runsAs is whom a command runs as; nil: the daemon's own user.
func (t Tool) runsAs() (*command.User, error) {
	if t.User == "" {
		return nil, nil //nolint:nilnil // none is said
	}
	found, err := user.Lookup(t.User)
	if err != nil {
		return nil, fmt.Errorf("this host has no user %q", t.User)
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	switch {
	case uid == 0 || gid == 0:
		return nil, fmt.Errorf("%s is root, or of root's group; a tool runs as neither", t.User)
	case os.Geteuid() != 0 && int(uid) != os.Geteuid():
		return nil, fmt.Errorf("the daemon is not root, so it can run a command as nobody but itself, and not as %s", t.User)
	}
	return &command.User{UID: uint32(uid), GID: uint32(gid)}, nil
}
