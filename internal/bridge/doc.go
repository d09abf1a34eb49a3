// Package bridge is the wire protocol between a discussion and the thread in which people follow
// it. Both sides share it: the session, which posts replies and reads what people write, and the
// bridge server, which stands between the session and the thread.
//
// # From the session to the bridge
//
// POST CALLBACK_URL with a Callback, as JSON. The kinds "reply" and "ack" are sent while the
// session runs, one for each reply line of its trace; "terminal" comes once, after the session. A
// reply is known by the pair of correlation id and seq, and seq is that of its line in the trace: a
// bridge that gets the same pair a second time answers 200 with {"ok":true,"dedupe":true} and posts
// nothing. Replies of one session come in order. Statuses mean:
//
//   - 2xx: done. 408, 425, 429 and 5xx: try again. Everything else: never mind; 404 is a token
//     that is not known, 410 a thread that is gone.
//
// A terminal callback has the replies of its own run only. Those that have a kind were streamed
// before; those without one could not be, and are still to be posted.
//
// # From the bridge to the session
//
// GET INBOX_URL?since=N answers with an InboxPage: the messages after N, at once if there are any,
// else when one comes or after LongPoll with none. Reading takes nothing away. Seq counts from 1
// for each correlation id.
//
// # Use
//
// Sender is the harness's ReplySender, Poller its Inbox; PostTerminal sends the terminal callback.
package bridge
