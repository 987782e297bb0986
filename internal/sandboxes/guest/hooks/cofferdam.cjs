'use strict'

// What a program does when it finds itself in a copy of its sandbox.
//
//   const cofferdam = require('/run/cofferdam/hooks/cofferdam.cjs')
//   cofferdam.onRestore()            // OpenSSL's random numbers are this copy's own
//   cofferdam.onRestore(forgetKeys)  // and then forgetKeys() is called
//
// A copy goes on with the memory of its source: whatever secret that holds is in every
// copy. The hooks run in the event loop, soon after the copy has begun; whoever must not
// use anything before they have run compares generation() with what it was.

const fs = require('node:fs')
const path = require('node:path')

const file = '/run/cofferdam/generation'
const seeder = path.join(__dirname, 'reseed.node')
const hooks = []
let last

// generation is the id of this copy: another one in each.
function generation () {
  return fs.readFileSync(file, 'ascii').trim()
}

// reseed has Node's own OpenSSL take fresh random numbers of the kernel's. Loading the
// library does that; that it is no module of Node's is no fault. It tells whether it was
// there to load.
function reseed () {
  if (!fs.existsSync(seeder)) return false
  try {
    process.dlopen({ exports: {} }, seeder)
  } catch (err) {
    if (!/did not self-register/.test(err.message)) throw err
  }
  return true
}

// onRestore has OpenSSL's random numbers renewed in each copy, and then hook called.
function onRestore (hook) {
  if (hook) hooks.push(hook)
  if (last !== undefined) return
  last = generation()
  fs.watch(file, { persistent: false }, () => {
    const now = generation()
    if (now === last || now === '') return
    last = now
    reseed()
    for (const each of hooks) {
      try {
        each()
      } catch (err) {
        console.error(err)
      }
    }
  })
}

module.exports = { generation, onRestore, reseed }
