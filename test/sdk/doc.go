// Package sdk runs the unmodified E2B SDKs against the wire that they speak, over
// loopback, with pretended sandboxes behind it. The programs are what a user would
// write; each is run with several versions of the SDK.
package sdk
