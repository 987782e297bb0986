package sshserver

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
)

// Names of the files of a sandbox's keys.
const (
	hostKeyFile  = "host_key"
	clientFile   = "id_ed25519"
	knownFile    = "known_hosts"
	settingsFile = "config"
)

// Keys are those of one sandbox, in a folder that only their owner reads.
type Keys struct {
	dir    string
	alias  string // by which the client knows the host
	host   ssh.Signer
	client ssh.PublicKey
}

// Alias is the name of a sandbox as a host of SSH. It is in nobody's DNS.
func Alias(sandbox string) string { return sandbox + ".cofferdam" }

// KeysIn reads the keys of a sandbox from its folder in all, which is made with new ones if
// it is not there. Several may do so at once. Folders of sandboxes that are not among the
// living are removed.
func KeysIn(all, sandbox string, living []string) (Keys, error) {
	forgetFolders(all, living)
	dir := filepath.Join(all, sandbox)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := makeKeys(dir, sandbox); err != nil {
			return Keys{}, fmt.Errorf("make the SSH keys of the sandbox %s: %w", sandbox, err)
		}
	}
	k := Keys{dir: dir, alias: Alias(sandbox)}
	host, err := readKey(filepath.Join(dir, hostKeyFile))
	if err != nil {
		return Keys{}, err
	}
	client, err := readKey(filepath.Join(dir, clientFile))
	if err != nil {
		return Keys{}, err
	}
	k.host, k.client = host, client.PublicKey()
	return k, nil
}

// newer is for how long a folder may be of a sandbox that was made after the living were
// listed.
const newer = time.Minute

// forgetFolders removes the folders of those that do not live any more, and what was left of
// making one. One that can't be removed is in nobody's way: it is tried again.
func forgetFolders(all string, living []string) {
	folders, _ := os.ReadDir(all)
	for _, f := range folders {
		info, err := f.Info()
		if err == nil && time.Since(info.ModTime()) > newer && !slices.Contains(living, f.Name()) {
			_ = os.RemoveAll(filepath.Join(all, f.Name()))
		}
	}
}

func readKey(path string) (ssh.Signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read an SSH key: %w", err)
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s is no SSH key: %w; remove its folder, and new ones are made", path, err)
	}
	return key, nil
}

// makeKeys makes a whole folder beside the place, and has it take that. Of several that do so at
// once, the first has made the keys.
func makeKeys(dir, sandbox string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	next, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(next)
	host, err := makeKey(filepath.Join(next, hostKeyFile), "the host "+Alias(sandbox))
	if err != nil {
		return err
	}
	if _, err := makeKey(filepath.Join(next, clientFile), "a client of "+Alias(sandbox)); err != nil {
		return err
	}
	known := Alias(sandbox) + " " + string(ssh.MarshalAuthorizedKey(host))
	if err := os.WriteFile(filepath.Join(next, knownFile), []byte(known), 0o600); err != nil {
		return err
	}
	err = os.Rename(next, dir)
	if _, there := os.Lstat(dir); there == nil {
		return nil // somebody else's are as good
	}
	return err
}

func makeKey(path, comment string) (ssh.PublicKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	return signer.PublicKey(), nil
}

// Settings is the block of an ssh_config for the sandbox, whose server is what proxy
// starts.
func (k Keys) Settings(proxy []string) (string, error) {
	words := make([]string, len(proxy))
	for i, word := range proxy {
		if strings.ContainsAny(word, "\n\x00") {
			return "", fmt.Errorf("%q can't stand in an ssh_config", word)
		}
		words[i] = strings.ReplaceAll(shellQuoted(word), "%", "%%") // which ssh would replace
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Host %s\n", k.alias)
	for _, line := range []string{
		"User agent",
		"ProxyCommand " + strings.Join(words, " "),
		"HostKeyAlias " + k.alias,
		"UserKnownHostsFile " + settingQuoted(filepath.Join(k.dir, knownFile)),
		"GlobalKnownHostsFile /dev/null",
		"StrictHostKeyChecking yes",
		"IdentityFile " + settingQuoted(filepath.Join(k.dir, clientFile)),
		"IdentitiesOnly yes",
		"IdentityAgent none",
		"PreferredAuthentications publickey",
		"ForwardAgent no",
		"ForwardX11 no",
	} {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	return b.String(), nil
}

// WriteSettings keeps the block beside the keys, for `ssh -F`.
func (k Keys) WriteSettings(proxy []string) (path string, err error) {
	text, err := k.Settings(proxy)
	if err != nil {
		return "", err
	}
	return filepath.Join(k.dir, settingsFile), atomicfile.ReplaceVolatile(filepath.Join(k.dir, settingsFile), []byte(text), 0o600)
}

// shellQuoted is a word of a ProxyCommand, which a shell reads.
func shellQuoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,+@", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// settingQuoted is a path in an ssh_config, which knows double quotes, and replaces what
// begins with a percent sign.
func settingQuoted(path string) string {
	return `"` + strings.NewReplacer("%", "%%", `"`, `\"`).Replace(path) + `"`
}
