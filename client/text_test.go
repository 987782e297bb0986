package client_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// TestTextThatJSONCantCarry: a text that is no UTF-8 is not sent, wherever it stands in a body, and
// the error names it. Package json would send U+FFFD: another argument, variable or file.
func TestTextThatJSONCantCarry(t *testing.T) {
	t.Parallel()
	const bad = "bad\xff"
	for name, test := range map[string]struct {
		do    func(ctx context.Context, c *client.Client, text string) error
		field string
	}{
		"argument": {func(ctx context.Context, c *client.Client, text string) error {
			_, err := c.StartCommand(ctx, "sb", api.StartCommand{Argv: []string{"printf", "%s", text}})
			return err
		}, "word 3 of the command is"},
		"variable's name": {func(ctx context.Context, c *client.Client, text string) error {
			_, err := c.StartCommand(ctx, "sb", api.StartCommand{Argv: []string{"x"}, Env: map[string]string{text: "1"}})
			return err
		}, `the name of the variable "bad\xff" is`},
		"variable": {func(ctx context.Context, c *client.Client, text string) error {
			_, err := c.StartCommand(ctx, "sb", api.StartCommand{Argv: []string{"x"}, Env: map[string]string{"K": text}})
			return err
		}, `the variable "K" is`},
		"folder": {func(ctx context.Context, c *client.Client, text string) error {
			_, err := c.StartCommand(ctx, "sb", api.StartCommand{Argv: []string{"x"}, Dir: "/" + text})
			return err
		}, "dir is"},
		"sandbox's variable": {func(ctx context.Context, c *client.Client, text string) error {
			_, err := c.CreateSandbox(ctx, api.CreateSandbox{Env: map[string]string{"K": text}})
			return err
		}, `the variable "K" is`},
		"mount's target": {func(ctx context.Context, c *client.Client, text string) error {
			_, err := c.CreateSandbox(ctx, api.CreateSandbox{Mounts: []api.Mount{{Source: "/x", Destination: "/" + text}}})
			return err
		}, "destination is"},
		"mount's source": {func(ctx context.Context, c *client.Client, text string) error {
			_, err := c.CreateSandbox(ctx, api.CreateSandbox{Mounts: []api.Mount{{Source: "/" + text, Destination: "/x"}}})
			return err
		}, "source is"},
		"run": {func(ctx context.Context, c *client.Client, text string) error {
			_, err := c.CreateSandbox(ctx, api.CreateSandbox{Run: text})
			return err
		}, "run is"},
		"directory": {func(ctx context.Context, c *client.Client, text string) error {
			_, err := c.MakeDirectory(ctx, "sb", client.File{Path: text})
			return err
		}, "path is"},
		"new name": {func(ctx context.Context, c *client.Client, text string) error {
			_, err := c.MoveFile(ctx, "sb", client.File{Path: "x"}, text)
			return err
		}, "to is"},
	} {
		c := client.New(filepath.Join(t.TempDir(), "none"))
		var text *client.TextError
		if err := test.do(t.Context(), c, bad); !errors.As(err, &text) || !strings.HasPrefix(err.Error(), test.field) {
			t.Errorf("%s: %v", name, err)
		}
		if err := test.do(t.Context(), c, "good\ufffd"); !errors.Is(err, client.ErrNoDaemon) {
			t.Errorf("%s: what is text was not sent: %v", name, err)
		}
	}
}
