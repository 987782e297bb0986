package main

import (
	"fmt"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// maxPolicy bounds a policy document; real ones have a few kilobytes.
const maxPolicy = 1 << 20

// readPolicy reads a policy document once and refuses a wrong one here, where
// the person can see the line. It also gives what the document says of lockfiles. One that
// was read already is doc; nil: it was not.
func readPolicy(path string, doc []byte) (api.Policy, policy.LockRules, error) {
	var parsed *policy.Policy
	var err error
	if doc == nil {
		doc, parsed, err = loadDeciding(path)
	} else {
		parsed, err = policy.Parse(path, doc)
	}
	if err != nil {
		return api.Policy{}, policy.LockRules{}, err
	}
	at, err := fromHere(path) // the name by which somebody was asked about it
	if err != nil {
		return api.Policy{}, policy.LockRules{}, fmt.Errorf("find the policy %s: %w", path, err)
	}
	return api.Policy{Source: filepath.Clean(at), Document: doc}, parsed.Lockfiles(), nil
}

// loadDeciding loads, as loadPolicy does, a policy by which something is decided.
func loadDeciding(path string) ([]byte, *policy.Policy, error) {
	doc, parsed, err := loadPolicy(path)
	if err == nil {
		err = checkSeen("policy", path, doc)
	}
	return doc, parsed, err
}

// loadPolicy reads and parses; positions in errors name path as it was typed.
func loadPolicy(path string) ([]byte, *policy.Policy, error) {
	data, err := readDocument("policy", path, maxPolicy)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := policy.Parse(path, data)
	if err != nil {
		return nil, nil, err
	}
	return data, parsed, nil
}
