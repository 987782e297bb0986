package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newAuditProve() *cobra.Command {
	var files auditFiles
	var out string
	cmd := &cobra.Command{
		Use:   "prove RECORD",
		Short: "Print the proof that a record is in the log",
		Long: `Prints a record with what proves that it is in the log: the hashes from it up to
the root of the tree, and the signed log checkpoint of that root. Whoever has the
public key can check it with "cofferdam audit check-proof", without the log. With --key it is
checked before it is printed: one that this key does not sign is refused. Without, it is checked
by the key that lies with the log, and the standard error says so.
Personal data are not in it; the record has only their salted hash.`,
		Example: "  cofferdam audit prove 1204\n  cofferdam audit prove 1204 -o record-1204.proof\n  cofferdam audit prove 1204 --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			record, err := recordNumber(args[0])
			if err != nil {
				return err
			}
			dir, err := files.directory()
			if err != nil {
				return err
			}
			proof, err := audit.Prove(dir, record)
			if err != nil {
				return err
			}
			if err := checkKey(&files, proof); err != nil {
				return err
			}
			return writeProof(proof, out, files.json)
		},
	}
	files.registerFlags(cmd)
	cmd.Flags().StringVarP(&out, "output", "o", "", "write it to this file")
	return cmd
}

// checkKey refuses a proof that the given key does not sign, and says by which key it is one.
func checkKey(files *auditFiles, proof audit.Proof) error {
	keys, err := files.readKeys()
	switch {
	case err != nil:
		return err
	case keys == nil:
		_, err = fmt.Fprintln(os.Stderr, "cofferdam: checked by the key that lies with the log, which whoever replaced the log can have replaced (give yours with --key)")
		return err
	}
	if _, err = proof.Check(*keys); err != nil {
		return fault.Wrap(fault.ErrConflict, err, "the key that you gave does not prove it")
	}
	return nil
}

func recordNumber(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fault.Invalid("%q is not a record's number; records are counted from 0", text)
	}
	return n, nil
}

func writeProof(proof audit.Proof, out string, asJSON bool) error {
	text := func(w io.Writer, proof audit.Proof) error {
		if asJSON {
			return ui.WriteJSON(w, proof)
		}
		_, err := io.WriteString(w, proof.Text())
		return err
	}
	if out == "" {
		return text(os.Stdout, proof)
	}
	var whole bytes.Buffer
	if err := text(&whole, proof); err != nil {
		return err
	}
	entry, err := findNamed(out)
	if err != nil {
		return fault.Invalid("the proof can't be written: %s %s", out, because(err))
	}
	if entry.File.IsZero() {
		err = entry.Create(whole.Bytes(), 0o644)
	} else {
		err = entry.Replace(whole.Bytes())
	}
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the proof can't be written")
	}
	return nil
}

func newAuditCheckProof() *cobra.Command {
	var key string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check-proof FILE --key KEY",
		Short: "Check the proof that a record is in a log",
		Long: `Checks what "cofferdam audit prove" printed, with only the public key: is the record
in the log that the key signs, with that number? The exit code is 0 if it is, and 1
if it is not.`,
		Example: "  cofferdam audit check-proof record-1204.proof --key cofferdam.pub",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if key == "" {
				return usageError(cmd, "a proof is worth what the key is worth: name the public key with --key")
			}
			return checkProof(args[0], key, asJSON)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the public key that you trust: a file, or the key itself")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func checkProof(path, key string, asJSON bool) error {
	keys, err := publicKeys(key)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the proof can't be read")
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, audit.MaxProof+1))
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the proof can't be read")
	}
	proof, err := audit.ParseProof(text)
	if err != nil {
		return err
	}
	head, err := proof.Check(keys)
	if err != nil {
		return err
	}
	if asJSON {
		return ui.WriteJSON(os.Stdout, map[string]any{
			"proved": true, "index": proof.Index, "record": proof.Record, "origin": head.Origin, "size": head.Size, "time": head.Time,
		})
	}
	_, err = fmt.Fprintf(os.Stdout, "Record %d is in the log %s, which had %s at %s:\n%s\n",
		proof.Index, ui.Printable(head.Origin), ui.Plural(int(head.Size), "record", "records"), head.Time.Local().Format("2006-01-02 15:04:05"), ui.Printable(proof.Record))
	return err
}
