/* engine_file: descriptors on their way to the engine, as a control message of the orders' socket. */
#include "engine_order.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

typedef union { /* aligned as its head must be */
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
} control;

bool engine_send_file(int socket, int file) {
    char byte = 0;
    control room;
    memset(&room, 0, sizeof room);
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof room.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(head), &file, sizeof file);
    ssize_t n;
    do
        n = sendmsg(socket, &message, ENGINE_NO_SIGNAL);
    while (n < 0 && errno == EINTR);
    return n == 1;
}

int engine_receive_file(int socket) {
    char byte;
    int file = -1;
    control room;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof room.bytes};
    ssize_t n;
    do
        n = recvmsg(socket, &message, 0);
    while (n < 0 && errno == EINTR);
    const struct cmsghdr *head = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof file))
        memcpy(&file, CMSG_DATA(head), sizeof file);
    return file;
}
