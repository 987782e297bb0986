package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// maxClientFile bounds a client's configuration; some keep much more in it.
const maxClientFile = 16 << 20

// mcpInstallFlags are those of `mcp install` and `mcp uninstall`.
type mcpInstallFlags struct {
	project, yes, dry bool
	url, tokenEnv     string
}

func (f *mcpInstallFlags) registerFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	set.BoolVar(&f.project, "project", false, "the project's configuration, in this directory (default: the user's)")
	set.BoolVar(&f.yes, "yes", false, "write without asking")
	set.BoolVar(&f.dry, "dry-run", false, "show the difference and write nothing")
	cmd.ValidArgsFunction = completeFirst(completeWords(mcpClientNames()...))
}

func newMCPInstall() *cobra.Command {
	var flags mcpInstallFlags
	cmd := &cobra.Command{
		Use:   "install [flags] CLIENT [-- FLAG...]",
		Short: "Add the server to an agent's configuration",
		Long: `Adds "cofferdam mcp" to the configuration of an agent: claude, codex, gemini, opencode,
copilot or qwen. It shows the difference and asks; all else in the file stays as it is,
and a file that can't be read is left alone. What is there under the name "cofferdam" is
replaced.

What follows -- are flags of "cofferdam mcp", such as a policy. Without --project, name its
files in full: the client may start in any directory. With --url the client speaks to a daemon over
the network; it takes the token from a variable, and none is written to a file.

Exit code 1: it was not written, because nobody agreed.`,
		Example: `  cofferdam mcp install claude
  cofferdam mcp install --project claude -- --policy policy.yaml --mount .:/workspace:rw
  cofferdam mcp install --dry-run codex
  cofferdam mcp install --url https://sandboxes.example:7433/mcp gemini`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() == 0 || cmd.ArgsLenAtDash() < 0 && len(args) > 1 || cmd.ArgsLenAtDash() > 1 {
				return usageError(cmd, "name one client: %s; flags of cofferdam mcp follow --", strings.Join(mcpClientNames(), ", "))
			}
			return flags.installServer(args[0], args[1:])
		},
	}
	flags.registerFlags(cmd)
	cmd.Flags().StringVar(&flags.url, "url", "", "address of a daemon's server, such as https://sandboxes.example:7433/mcp, in the place of a command")
	cmd.Flags().StringVar(&flags.tokenEnv, "token-env", "COFFERDAM_TOKEN", "with --url: the variable from which the client takes the token")
	incomplete(cmd, "url", "token-env")
	return cmd
}

func newMCPUninstall() *cobra.Command {
	var flags mcpInstallFlags
	cmd := &cobra.Command{
		Use:   "uninstall [flags] CLIENT",
		Short: "Take the server out of an agent's configuration",
		Long: `Takes the server "cofferdam" out of the configuration of an agent. It shows the difference
and asks; all else in the file stays as it is.`,
		Example: "  cofferdam mcp uninstall claude\n  cofferdam mcp uninstall --project --yes opencode",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			client, err := mcpClientOf(args[0])
			if err != nil {
				return err
			}
			return flags.change(client, nil)
		},
	}
	flags.registerFlags(cmd)
	return cmd
}

// installServer writes a client's configuration.
func (f mcpInstallFlags) installServer(name string, flags []string) error {
	client, err := mcpClientOf(name)
	if err != nil {
		return err
	}
	server, err := f.server(client, flags)
	if err != nil {
		return err
	}
	return f.change(client, client.serverEntry(server, f.project))
}

// server is what the client is told, once all of it is known to be right.
func (f mcpInstallFlags) server(client mcpClient, flags []string) (mcpServer, error) {
	if f.url != "" {
		switch {
		case !client.remote:
			return mcpServer{}, fault.Invalid("--url: it is not known here how %s has addresses; leave it out, and give --host behind --", client.name)
		case len(flags) > 0:
			return mcpServer{}, fault.Invalid("with --url nothing is started here, so that no flags can follow --")
		case !strings.HasPrefix(f.url, "https://") && !strings.HasPrefix(f.url, "http://"):
			return mcpServer{}, fault.Invalid("--url %q must begin with https:// (or http:// on this machine)", f.url)
		}
		return mcpServer{url: f.url, tokenEnv: f.tokenEnv}, nil
	}
	probe := newMCP()
	remoteFlags(probe)
	if err := probe.ParseFlags(flags); err != nil {
		return mcpServer{}, fault.Invalid("what follows -- is for cofferdam mcp: %s", err)
	}
	if rest := probe.Flags().Args(); len(rest) > 0 {
		return mcpServer{}, fault.Invalid("what follows -- is for cofferdam mcp, which takes flags only: %q is none", rest[0])
	}
	if err := f.checkFiles(probe); err != nil {
		return mcpServer{}, err
	}
	command, err := ownCommand()
	return mcpServer{command: command, args: append([]string{"mcp"}, flags...)}, err
}

// checkFiles looks whether the files that flags of `cofferdam mcp` name are there, wherever the client starts it. The
// source of a mount may well be from there: the project in which the client is.
func (f mcpInstallFlags) checkFiles(probe *cobra.Command) error {
	for _, flag := range []string{"policy", "lockfile", "token-file", "ca"} {
		paths, err := probe.Flags().GetStringArray(flag)
		if err != nil {
			paths = []string{probe.Flags().Lookup(flag).Value.String()}
		}
		for _, path := range paths {
			if path == "" {
				continue
			}
			at, err := openNamed(path)
			if err != nil {
				return fault.Invalid("--%s: the file %s %s", flag, path, because(err))
			}
			at.Close()
			full, err := filepath.Abs(path)
			if err != nil {
				return fmt.Errorf("find %s: %w", path, err)
			}
			if !f.project && full != path {
				return fault.Invalid("--%s %s is a path from here, and the client may start in any directory: write %s, or give --project before -- for this directory's configuration", flag, path, full)
			}
		}
	}
	return nil
}

// ownCommand returns how a client starts this program: by its name, if that finds it.
func ownCommand() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if found, err := exec.LookPath(mcpName); err == nil && resolved(found) == resolved(self) {
		return mcpName, nil
	}
	return self, nil
}

// change shows what becomes of a client's configuration, asks, and writes it; a nil entry is
// taken out.
func (f mcpInstallFlags) change(client mcpClient, entry any) error {
	edit, err := f.planEdit(client, entry)
	if err != nil {
		return err
	}
	if bytes.Equal(edit.before, edit.after) {
		state := "already has it"
		if entry == nil {
			state = "has no server " + mcpName
		}
		_, err := fmt.Fprintf(os.Stderr, "cofferdam: %s %s\n", ui.Printable(edit.path), state)
		return err
	}
	if _, err := io.WriteString(os.Stdout, ui.PrintableText(edit.diff)); err != nil {
		return err
	}
	switch {
	case f.dry:
		return nil
	case !f.yes && !ui.CanAsk():
		return fault.Invalid("nobody is there to be asked; add --yes to write %s", edit.path)
	case !f.yes && !ui.Agrees("write "+ui.Printable(edit.path)+"?"):
		return &exitError{code: exitFailure, err: errors.New("nothing was written")}
	}
	if err := edit.writeFile(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stderr, "cofferdam: wrote %s; restart %s to have it read\n", ui.Printable(edit.path), client.name)
	return err
}

// planEdit works out the change.
func (f mcpInstallFlags) planEdit(client mcpClient, entry any) (fileEdit, error) {
	path, err := client.configFile(f.project)
	if err != nil {
		return fileEdit{}, err
	}
	e, err := findEdit("configuration", path, maxClientFile)
	if errors.Is(err, fs.ErrNotExist) {
		e, err = fileEdit{path: path, isNew: true}, nil // in a directory that is made with it
	}
	if err != nil {
		return e, err
	}
	form := editJSON
	if client.toml {
		form = editTOML
	}
	if e.after, err = form(e.before, client.member, entry); err != nil {
		return e, fault.Invalid("%s is left as it is: %s", path, err)
	}
	e.diff = unified(e)
	return e, nil
}
