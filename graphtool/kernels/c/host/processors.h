/* How many processors this process may use: those that the system lets it run on, and no more than
   its groups' quotas of time (Linux, cgroups of both versions), rounded down: a thread more would
   use the quota up before the period ends, and then all would stand still. */
#ifndef GT_PROCESSORS_H
#define GT_PROCESSORS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined __unix__ || defined __APPLE__
#include <unistd.h>
#elif defined _WIN32
#include "threads.h"
#endif

enum { GT_PATH = 4096 };

/* The first line of a file, or the one that starts so; 0 if there is none. `line` has GT_PATH. */
static inline int gt_line(const char *root, const char *path, const char *start, char *line)
{
    char whole[GT_PATH + 256];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    FILE *in = fopen(whole, "r");
    int found = 0;
    while (in && !found && fgets(line, GT_PATH, in)) found = !strncmp(line, start, strlen(start));
    if (in) fclose(in);
    return found;
}

/* The processors of a list such as 0-3,8. */
static inline int gt_listed(const char *list)
{
    int count = 0;
    while (*list >= '0' && *list <= '9') {
        char *end;
        const long first = strtol(list, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        count += (int)(last - first + 1);
        list = *end == ',' ? end + 1 : end;
    }
    return count;
}

/* The least quota of a group and those above it, in processors, at least 1; `most` without one. */
static inline int gt_quota(const char *root, const char *mount, char *group, int v2, int most)
{
    for (;;) {
        char path[GT_PATH + 128], line[GT_PATH], *rest;
        double quota = 0, period = 0;
        snprintf(path, sizeof path, "%s%s/%s", mount, group, v2 ? "cpu.max" : "cpu.cfs_quota_us");
        if (gt_line(root, path, "", line)) { /* "max 100000" and -1: no quota */
            quota = strtod(line, &rest);
            period = strtod(rest, 0);
            snprintf(path, sizeof path, "%s%s/cpu.cfs_period_us", mount, group);
            if (!v2 && gt_line(root, path, "", line)) period = strtod(line, 0);
        }
        if (quota > 0 && period > 0 && quota / period < most)
            most = quota / period < 1 ? 1 : (int)(quota / period);
        char *const slash = strrchr(group, '/');
        if (!slash) return most;
        *slash = 0;
    }
}

/* As a machine has it whose files are under `root`: "" for this one. */
static inline int gt_processors_of(const char *root)
{
    char line[GT_PATH], path[GT_PATH];
    int most = 1;
#if defined _SC_NPROCESSORS_ONLN
    most = (int)sysconf(_SC_NPROCESSORS_ONLN);
#elif defined _WIN32
    DWORD_PTR mine, all; /* a bit for each processor */
    if (GetProcessAffinityMask(GetCurrentProcess(), &mine, &all))
        most = __builtin_popcountll((unsigned long long)mine);
#endif
    if (gt_line(root, "/proc/self/status", "Cpus_allowed_list:", line)) {
        const int allowed = gt_listed(line + strcspn(line, "0123456789"));
        if (allowed > 0) most = allowed;
    }
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in)) { /* "0::/group", or "4:cpu,cpuacct:/group" */
        line[strcspn(line, "\n")] = 0;
        char *names = strchr(line, ':');
        char *group = names ? strchr(names + 1, ':') : 0;
        if (!group) continue;
        *group++ = 0, *names = ',';
        strcpy(path, names);
        strcat(path, ",");
        if (!strcmp(path, ",,")) most = gt_quota(root, "/sys/fs/cgroup", group, 1, most);
        if (strstr(path, ",cpu,")) most = gt_quota(root, "/sys/fs/cgroup/cpu", group, 0, most);
    }
    if (in) fclose(in);
    return most > 0 ? most : 1;
}

#ifdef __wasm__
static inline int gt_processors(void) { return 1; } /* the host knows, and says how many to use */
#else
/* Those of this process, as they were when it first asked. */
static inline int gt_processors(void)
{
    static int known;
    int count = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!count) {
        count = gt_processors_of("");
        __atomic_store_n(&known, count, __ATOMIC_RELAXED);
    }
    return count;
}
#endif

#endif
