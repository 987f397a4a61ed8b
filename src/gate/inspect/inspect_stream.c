/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/inspect/inspect_stream.c - one side of an inspected connection
 */
#include "gate/inspect/inspect_stream.h"

#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define PIECE (64 << 10)

void inspect_stream_init(struct stream *stream, int fd, SSL *ssl, struct gate_page *page, struct gate_host *counted,
			 bool is_jars)
{
	*stream = (struct stream){.fd = fd, .ssl = ssl, .page = page, .counted = counted, .is_jars = is_jars};
	stream->is_ready = !ssl;
}

void inspect_stream_done(struct stream *stream)
{
	SSL_free(stream->ssl);
	text_done(&stream->in);
	text_done(&stream->wire);
	*stream = (struct stream){.fd = -1};
}

/* --- what comes --------------------------------------------------------------------------------------------- */

static bool has_room(const struct stream *stream)
{
	size_t undeciphered = stream->ssl ? BIO_ctrl_pending(SSL_get_rbio(stream->ssl)) : 0;

	return stream->in.len < STREAM_IN_MAX && undeciphered < STREAM_IN_MAX;
}

static int take_from_socket(struct stream *stream)
{
	static char bytes[PIECE];
	uint64_t room = gate_account_room(stream->page);
	ssize_t len;

	if (stream->is_socket_over || !has_room(stream))
		return 0;
	if (!room)
		return -EDQUOT;
	len = recv(stream->fd, bytes, MIN_OF(room, sizeof(bytes)), MSG_DONTWAIT);
	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	if (len == 0) {
		stream->is_socket_over = true;
		stream->is_ended |= !stream->ssl;
		return 1;
	}
	gate_account_add(stream->page, stream->counted, stream->is_jars, (uint64_t)len);
	if (stream->ssl && BIO_write(SSL_get_rbio(stream->ssl), bytes, (int)len) != len)
		return -EPIPE;
	if (!stream->ssl)
		text_append(&stream->in, bytes, (size_t)len);
	return text_failed(&stream->in) ? -EPIPE : 1;
}

static int decipher(struct stream *stream)
{
	static char bytes[PIECE];
	int changed = 0;

	while (stream->in.len < STREAM_IN_MAX && !stream->is_ended) {
		size_t len;
		int error;

		ERR_clear_error();
		if (SSL_read_ex(stream->ssl, bytes, sizeof(bytes), &len)) {
			text_append(&stream->in, bytes, len);
			changed = 1;
			continue;
		}
		error = SSL_get_error(stream->ssl, 0);
		if (error == SSL_ERROR_ZERO_RETURN || (error == SSL_ERROR_WANT_READ && stream->is_socket_over)) {
			stream->is_ended = true;
			stream->is_cut = error != SSL_ERROR_ZERO_RETURN;
			changed = 1;
		} else if (error != SSL_ERROR_WANT_READ) {
			return -EPIPE;
		}
		break;
	}
	return text_failed(&stream->in) ? -EPIPE : changed;
}

int inspect_stream_fill(struct stream *stream)
{
	int rc = take_from_socket(stream), more;

	if (rc < 0 || !stream->ssl || !stream->is_ready)
		return rc;
	more = decipher(stream);
	return more < 0 ? more : rc | more;
}

int inspect_stream_ignore(struct stream *stream)
{
	int rc = take_from_socket(stream);

	stream->in.len = 0;
	if (stream->ssl)
		(void)BIO_reset(SSL_get_rbio(stream->ssl));
	return rc;
}

int inspect_stream_shake_hands(struct stream *stream)
{
	int rc, error;

	if (stream->is_ready)
		return 0;
	ERR_clear_error();
	rc = SSL_do_handshake(stream->ssl);
	if (rc == 1) {
		stream->is_ready = true;
		return 1;
	}
	error = SSL_get_error(stream->ssl, rc);
	return (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_CLIENT_HELLO_CB) && !stream->is_socket_over
		       ? 0
		       : -EPROTO;
}

/* --- what goes ---------------------------------------------------------------------------------------------- */

bool inspect_stream_write(struct stream *stream, const void *bytes, size_t len)
{
	size_t written;

	if (!len || stream->is_shut)
		return true;
	if (!stream->ssl) {
		text_append(&stream->wire, bytes, len);
		return !text_failed(&stream->wire);
	}
	ERR_clear_error();
	return SSL_write_ex(stream->ssl, bytes, len, &written) && written == len;
}

void inspect_stream_shut(struct stream *stream)
{
	if (stream->ssl && stream->is_ready && !stream->is_shut) {
		ERR_clear_error();
		SSL_shutdown(stream->ssl);
	}
	stream->is_shut = true;
}

size_t inspect_stream_waiting(const struct stream *stream)
{
	return stream->wire.len + (stream->ssl ? BIO_ctrl_pending(SSL_get_wbio(stream->ssl)) : 0);
}

int inspect_stream_flush(struct stream *stream)
{
	ssize_t len;

	if (!stream->wire.len && stream->ssl) {
		size_t waiting = MIN_OF(BIO_ctrl_pending(SSL_get_wbio(stream->ssl)), (size_t)PIECE);
		char *room = waiting ? text_reserve(&stream->wire, waiting) : NULL;
		int taken = room ? BIO_read(SSL_get_wbio(stream->ssl), room, (int)waiting) : 0;

		if (taken > 0)
			stream->wire.len += (size_t)taken;
	}
	if (!stream->wire.len)
		return 0;
	len = send(stream->fd, stream->wire.data, stream->wire.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	text_consume(&stream->wire, (size_t)len);
	return 1;
}

uint32_t inspect_stream_events(const struct stream *stream)
{
	return (!stream->is_socket_over && has_room(stream) ? EPOLLIN : 0) |
	       (inspect_stream_waiting(stream) ? EPOLLOUT : 0);
}
