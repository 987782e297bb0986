package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// hints say how a tool behaves; clients ask their people by them.
type hints struct {
	title       string
	readOnly    bool
	destructive bool // it may change or remove what is there
	repeatable  bool // doing it twice is doing it once
	world       bool // what it does is seen outside of the sandbox: packages come in, people are asked
}

func (h hints) annotations() *sdk.ToolAnnotations {
	return &sdk.ToolAnnotations{
		Title: h.title, ReadOnlyHint: h.readOnly, IdempotentHint: h.repeatable,
		DestructiveHint: &h.destructive, OpenWorldHint: &h.world,
	}
}

// addTool adds one: what it takes is its schema. It gives one text of JSON, and nothing else:
// every client reads that, while of a text and a structured result some read the one, some the
// other, and some both (decision 119). So no schema says what it gives.
func addTool[In, Out any](s *Server, name, description string, h hints, do func(context.Context, call, In) (Out, error)) {
	addAskingTool(s, name, description, h, func(ctx context.Context, c call, in In) (*sdk.CallToolResult, Out, error) {
		out, err := do(ctx, c, in)
		return nil, out, err
	})
}

// addAskingTool adds a tool that may ask the client for something first.
func addAskingTool[In, Out any](s *Server, name, description string, h hints, do func(context.Context, call, In) (*sdk.CallToolResult, Out, error)) {
	s.takes[name] = schemaOf[In]()
	sdk.AddTool(s.sdk, &sdk.Tool{Name: name, Title: h.title, Description: description, Annotations: h.annotations(), InputSchema: s.takes[name]},
		func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
			p, err := s.peerOf(req.Session, req.Extra)
			if err != nil {
				return nil, nil, err
			}
			ctx, done, err := p.enterCall(ctx)
			if err != nil {
				return nil, nil, err
			}
			defer done()
			if err := backend.CheckCounts(&in); err != nil {
				return nil, nil, explained(ctx, err)
			}
			result, out, err := do(ctx, call{p, req}, in)
			if err != nil || result != nil {
				return result, nil, explained(ctx, err)
			}
			result, err = asText(out)
			return result, nil, err
		})
}

// asText is a result as one text.
func asText(out any) (*sdk.CallToolResult, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // no page: it would be longer, and harder to read
	if err := encoder.Encode(out); err != nil {
		return nil, fmt.Errorf("encode a tool's result: %w", err)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.TrimSuffix(text.String(), "\n")}}}, nil
}

// schemaOf is the schema of what a tool takes. A slice may be nil in Go, of which nothing is sent: some
// clients' models take no alternatives of types.
func schemaOf[T any]() *jsonschema.Schema {
	schema, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[commandLine](): commandLineSchema()}})
	if err != nil {
		panic(err) // a type of ours; every test of this package fails then
	}
	singleTypes(schema)
	return schema
}

func singleTypes(schema *jsonschema.Schema) {
	if schema == nil {
		return
	}
	if len(schema.Types) == 2 && schema.Types[0] == "null" {
		schema.Type, schema.Types = schema.Types[1], nil
	}
	singleTypes(schema.Items)
	for _, property := range schema.Properties {
		singleTypes(property)
	}
}

// addTools adds all of them: few, since each takes room in a model's context.
func (s *Server) addTools() {
	const ifRefused = " If it is refused, do not retry: why_blocked says why, request_approval asks a person."
	addTool(s, "create_sandbox", "Makes another sandbox. You rarely need this: every tool makes your default sandbox by itself.",
		hints{title: "Create a sandbox"}, createSandbox)
	addTool(s, "list_sandboxes", "Lists your own sandboxes of this session, with their state and what they wait for.",
		hints{title: "List sandboxes", readOnly: true, repeatable: true}, listSandboxes)
	addTool(s, "delete_sandbox", "Ends all that runs in one of your sandboxes and removes it with its files.",
		hints{title: "Delete a sandbox", destructive: true, repeatable: true}, deleteSandbox)
	addTool(s, "run_command", "Runs a command in a sandbox and returns its exit code and output. There is no network, and files stay between calls. "+
		"Give a text for a shell, or a list for a program with its arguments. Use install_packages for packages."+ifRefused,
		hints{title: "Run a command", destructive: true, world: true}, runCommand)
	addTool(s, "run_code", "Runs a short program that is given as text: python, javascript or bash. Each call is a process of its own; files stay, variables do not."+ifRefused,
		hints{title: "Run code", destructive: true, world: true}, runCode)
	addTool(s, "wait_command", "Goes on waiting for a command that was returned with \"waiting\": it waits for a person's approval and is still there.",
		hints{title: "Wait for a command", world: true}, waitCommand)
	addTool(s, "read_file", "Reads a file of a sandbox. A file that is no plain text comes as base64, with binary: true.",
		hints{title: "Read a file", readOnly: true, repeatable: true}, readFile)
	addTool(s, "write_file", "Writes a file of a sandbox, in one step; folders above it are made.",
		hints{title: "Write a file", destructive: true, repeatable: true}, writeFile)
	addTool(s, "list_files", "Lists a folder of a sandbox. The path of an entry with escaped: true is written with escapes, and no tool finds the file by it: use run_command, as with find -inum or a pattern.",
		hints{title: "List files", readOnly: true, repeatable: true}, listFiles)
	addTool(s, "plan_packages", "Says what an install would bring and what the policy says of each release (allow, hold: a person decides, deny). Installs nothing.",
		hints{title: "Plan an install", readOnly: true, world: true}, planPackages)
	addTool(s, "install_packages", "Installs packages in a sandbox with the ecosystem's own client. What the policy does not allow is refused, and \"refused\" lists it with the reason. "+
		"Then do not retry: plan_packages shows the whole tree, request_approval asks a person for it.",
		hints{title: "Install packages", world: true}, installPackages)
	addTool(s, "why_blocked", "Says what was refused, by which rule of the policy, and what would allow it.",
		hints{title: "Why was it blocked?", readOnly: true, repeatable: true}, whyBlocked)
	addAskingTool(s, "request_approval", "Asks a person to allow packages that plan_packages shows as \"hold\", with your reason. You can not approve it yourself. Tell your user how to answer, then install again once it is approved.",
		hints{title: "Ask for an approval", repeatable: true, world: true}, requestApproval)
	addTool(s, "explain_policy", "Explains the policy of your sandboxes, and with a package what it decides about that.",
		hints{title: "Explain the policy", readOnly: true, repeatable: true}, explainPolicy)
}
