// Package loglimit bounds what the logs of this program's processes take at somebody else's
// will: a Handler lets few lines of a kind through in a minute and counts the others, and
// Trim keeps a file small that processes append to.
package loglimit
