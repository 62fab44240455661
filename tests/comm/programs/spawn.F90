! Starts two processes of itself, with two words or with none; each sends a number more than there are characters in them.
program spawn
  use mpi
  implicit none
  integer :: ierr, parent, others, rank, i, n
  character(len=512) :: word
  character(len=6) :: words(3)
  double precision :: x(20)
  call MPI_Init(ierr)
  call MPI_Comm_get_parent(parent, ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  x = 0
  if (parent == MPI_COMM_NULL) then
    call get_command_argument(0, word)
#if WORDS
    words = (/ "a b   ", "c=d   ", "      " /)
    call MPI_Comm_spawn(word, words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, others, MPI_ERRCODES_IGNORE, ierr)
#else
    call MPI_Comm_spawn(word, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, others, MPI_ERRCODES_IGNORE, ierr)
#endif
    do i = 0, 1
      if (rank == 0) call MPI_Recv(x, 20, MPI_DOUBLE_PRECISION, i, 0, others, MPI_STATUS_IGNORE, ierr)
    end do
    call MPI_Comm_disconnect(others, ierr)
  else
    n = 1
    do i = 1, command_argument_count()
      call get_command_argument(i, word)
      n = n + len_trim(word)
    end do
    call MPI_Send(x, n, MPI_DOUBLE_PRECISION, 0, 0, parent, ierr)
    call MPI_Comm_disconnect(parent, ierr)
  end if
  call MPI_Finalize(ierr)
end program spawn
