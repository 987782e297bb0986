package mcp

import (
	"context"
	"fmt"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

type codeInput struct {
	aboutSandbox
	howToRun

	Language string `json:"language" jsonschema:"python, javascript or bash"`
	Code     string `json:"code" jsonschema:"the program's text; print what you want to see"`
}

// interpreters are the programs that take code as text: what stands before it.
func interpreters() map[string][]string {
	return map[string][]string{
		"python":     {"python3", "-c"},
		"javascript": {"node", "-e"},
		"bash":       {"bash", "-c"},
	}
}

// codeCommand is how code becomes a command: the one place that knows. No text is a program, too,
// which does nothing.
func codeCommand(language, code string) (argv []string, err error) {
	before, known := interpreters()[language]
	switch {
	case !known:
		return nil, failure(codeInvalid, fmt.Sprintf("there is no interpreter for %q", text.Shorten(language, 32)), "write python, javascript or bash")
	case len(code) > maxArgument:
		return nil, failure(codeTooLarge, fmt.Sprintf("code has %d bytes; it may have %d", len(code), maxArgument), "write it to a file (write_file) and run that (run_command)")
	}
	return append(slices.Clone(before), code), nil
}

func runCode(ctx context.Context, c call, in codeInput) (ran, error) {
	argv, err := codeCommand(in.Language, in.Code)
	if err != nil {
		return ran{}, err
	}
	start, err := in.commandRequest(argv)
	if err != nil {
		return ran{}, err
	}
	start.Code = true
	return c.runCommand(ctx, in.Sandbox, start)
}
